"""Long texts in a served graph, held to the rows that a run is trained on."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.long_texts import LongTextPacker, join_in_graph
from keras_bert_impl.serving.signatures import graph_function, text_specs
from keras_bert_impl.tokenization.graph_tokenizer import GraphTokenizer
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.records.rows import Rows
from pipelines.tasks.text_rows import TextExample, join_windows, text_rows
from tests.support.model_folders import WORD_VOCABULARY, WORDS

LENGTH = 9
SETTINGS = TextSettings(WORD_VOCABULARY)
TOKENIZER, GRAPH_TOKENIZER = Tokenizer(SETTINGS), GraphTokenizer(SETTINGS)
WAYS = {
    "truncate": LongTexts(),
    "head_tail": LongTexts(long_text="head_tail"),
    "windows": LongTexts(long_text="windows", doc_stride=2),
    "windows without overlap": LongTexts(long_text="windows", doc_stride=100),
}
PACKERS = {
    name: graph_function(
        LongTextPacker(GRAPH_TOKENIZER, WORD_VOCABULARY, LENGTH, way),
        text_specs("text_a", "text_b"),
    )
    for name, way in WAYS.items()
}
texts = st.lists(st.sampled_from([*WORDS[:9], "unknown"]), max_size=20).map(" ".join)


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_the_graph_packs_what_training_packs(name, pairs):
    found = PACKERS[name](*(tf.constant(side) for side in zip(*pairs, strict=True)))
    examples = [TextExample(str(number), *pair) for number, pair in enumerate(pairs)]
    rows = text_rows(examples, TOKENIZER, LENGTH, WAYS[name])
    np.testing.assert_array_equal(found.text, rows.examples)
    expected = rows.padded(int(rows.lengths.max()))
    for array, wanted in zip(found.inputs, expected.values(), strict=False):
        np.testing.assert_array_equal(array, wanted)


def test_a_batch_may_be_empty():
    for packer in PACKERS.values():
        rows = packer(tf.constant([], tf.string), tf.constant([], tf.string))
        assert (rows.inputs[0].shape[0], rows.text.shape[0]) == (0, 0)


@pytest.mark.parametrize("way", ["mean", "max"])
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 9))
def test_logits_are_joined_as_offline(way, counts, seed):
    text = np.repeat(np.arange(len(counts)), counts)
    logits = np.random.default_rng(seed).normal(size=[len(text), 3]).astype(np.float32)
    rows = Rows(text, np.ones(len(text), np.int64), {})
    expected = join_windows(rows, logits, way)
    assert expected.shape == (len(counts), 3)
    found = join_in_graph(tf.constant(logits), tf.constant(text), way)
    np.testing.assert_allclose(found, expected, atol=1e-6)
