import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.graph_packing import pack_in_graph
from keras_bert_impl.tokenization.packing import pack_pair
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdefgh"])
SEGMENT = st.lists(st.integers(5, 12), max_size=14)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SEGMENT, SEGMENT), min_size=1, max_size=4), st.booleans())
def test_rows_are_packed_as_one_by_one(rows, pairs):
    segments_a = tf.ragged.constant([a for a, _ in rows], tf.int32, ragged_rank=1)
    segments_b = tf.ragged.constant([b for _, b in rows], tf.int32, ragged_rank=1)
    packed = pack_in_graph(segments_a, segments_b if pairs else None, 12, VOCABULARY)
    # A second segment without ids counts as none.
    one_by_one = [pack_pair(a, (pairs and b) or None, 12, VOCABULARY) for a, b in rows]
    for name in ("input_ids", "input_mask", "segment_ids"):
        expected = np.stack([getattr(row, name) for row in one_by_one])
        np.testing.assert_array_equal(packed[name].numpy(), expected)
        assert packed[name].dtype == tf.int32


def test_the_length_is_known_in_a_graph():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1)])
    def pack(segments):
        packed = pack_in_graph(segments, None, 7, VOCABULARY)
        assert packed["input_ids"].shape[1] == 7
        return packed["input_ids"]

    assert pack(tf.ragged.constant([[5], [6, 7]])).shape == (2, 7)
