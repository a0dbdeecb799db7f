import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.graph_rows import pack_in_graph
from keras_bert_impl.tokenization.packing import pack_batch
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import alphabet_vocabulary, expected_ids, trouble_text

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdefgh"])
SEGMENT = st.lists(st.integers(5, 12), max_size=14)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(SEGMENT, SEGMENT), min_size=1, max_size=4), st.booleans())
def test_rows_are_packed_as_in_numpy(rows, pairs):
    segments_a = tf.ragged.constant([a for a, _ in rows], tf.int32, ragged_rank=1)
    segments_b = tf.ragged.constant([b for _, b in rows], tf.int32, ragged_rank=1)
    packed = pack_in_graph(segments_a, segments_b if pairs else None, 12, VOCABULARY)
    # A second segment without ids counts as none.
    firsts, seconds = [a for a, _ in rows], [b for _, b in rows] if pairs else None
    expected = pack_batch(firsts, seconds, VOCABULARY, 12, pad_to_longest=False)
    for name in expected:
        np.testing.assert_array_equal(packed[name].numpy(), expected[name])
        assert packed[name].dtype == tf.int32


ALPHABET = alphabet_vocabulary()
HARD = [
    "The words.",
    "",
    "ΑΣ ΑΣ.Α ΣΣΣ'",
    "é" * 150 + " é",
    "é" * 201 + " [MASK] 각§",
    "a\0b\ufffd\u200d!",
    "各" * 3,
]


@pytest.fixture(scope="module")
def in_graph():
    layer = GraphTokenizer(TextSettings(ALPHABET))
    return tf.function(layer, input_signature=[tf.TensorSpec([None], tf.string)])


@settings(max_examples=100, deadline=None)
@given(st.lists(trouble_text(), min_size=1, max_size=4))
@example(["a\ud800b"])
@example(HARD)
def test_any_text_in_a_graph(in_graph, lines):
    # TensorFlow refuses a `str` with half of a surrogate pair.
    encoded = [as_text(line).encode() for line in lines]
    assert in_graph(tf.constant(encoded)).to_list() == expected_ids(lines, ALPHABET, True)


@pytest.mark.parametrize("lines", ["the", [["the"]]])
def test_lines_of_another_shape_are_refused_before_the_kernels(lines):
    with pytest.raises(UserError, match=r"are not \[batch\]; give a list of lines"):
        GraphTokenizer(TextSettings(VOCABULARY))(tf.constant(lines))
