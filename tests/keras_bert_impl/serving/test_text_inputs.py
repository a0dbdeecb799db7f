import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.signatures import graph_function, text_specs
from keras_bert_impl.serving.text_inputs import TextPacker
from keras_bert_impl.tokenization.graph_tokenizer import GraphTokenizer
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.tasks.task import Example
from pipelines.tasks.text_features import text_features
from tests.support.model_folders import WORD_VOCABULARY, WORDS

TOKENIZER = Tokenizer(WORD_VOCABULARY)
PACKER = TextPacker(GraphTokenizer(WORD_VOCABULARY), WORD_VOCABULARY, max_length=8)
PACKED_PAIRS = graph_function(PACKER, text_specs("texts_a", "texts_b"))
texts = st.lists(st.sampled_from([*WORDS[:9], "unknown"]), max_size=9).map(" ".join)


def test_a_text_stands_between_cls_and_sep_and_shorter_rows_are_padded():
    ids, mask, segments = (array.numpy().tolist() for array in PACKER(["the dog", "dogs run."]))
    assert ids == [[2, 5, 6, 3, 0, 0], [2, 6, 15, 1, 13, 3]]
    assert mask == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    assert segments == [[0] * 6, [0] * 6]


def test_a_pair_has_two_segments():
    ids, _, segments = (array.numpy().tolist() for array in PACKER(["the dog"], ["runs"]))
    assert ids == [[2, 5, 6, 3, 8, 3]]
    assert segments == [[0, 0, 0, 0, 1, 1]]


@pytest.mark.parametrize("batch", [[], [""], ["", "the"]])
def test_a_batch_may_be_empty_and_so_may_a_text(batch):
    ids, mask, _ = PACKER(tf.constant(batch, tf.string))
    assert len(ids) == len(batch)
    assert mask.numpy().sum(axis=1).tolist() == [3 if text else 2 for text in batch]


def test_a_second_text_without_pieces_counts_as_none():
    ids, mask, segments = (array.numpy().tolist() for array in PACKER(["the dog"] * 2, ["", "a"]))
    assert ids == [[2, 5, 6, 3, 0, 0], [2, 5, 6, 3, 10, 3]]
    assert mask == [[1, 1, 1, 1, 0, 0], [1] * 6]
    assert segments == [[0] * 6, [0, 0, 0, 0, 1, 1]]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=12))
def test_the_graph_packs_what_training_packs(pairs):
    found = PACKED_PAIRS(*(tf.constant(side) for side in zip(*pairs, strict=True)))
    examples = [Example(str(number), *pair) for number, pair in enumerate(pairs)]
    expected = text_features(examples, TOKENIZER, max_seq_length=8)
    for array, wanted in zip(found, expected.values(), strict=True):
        shown = np.pad(array.numpy(), [(0, 0), (0, 8 - array.shape[1])])
        np.testing.assert_array_equal(shown, wanted)
