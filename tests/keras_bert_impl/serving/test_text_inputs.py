"""Packed inputs of a served graph, held to the rows that a run is trained on."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.served_models import MaskedTextPacker, TextPacker, join_in_graph
from keras_bert_impl.serving.signatures import graph_function, text_specs
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.text_rows import TextExample, join_windows, text_rows
from pipelines.records.rows import Rows
from tests.support.model_folders import WORD_VOCABULARY, WORDS

SETTINGS = TextSettings(WORD_VOCABULARY)
TOKENIZER, GRAPH_TOKENIZER = Tokenizer(SETTINGS), GraphTokenizer(SETTINGS)
PACKER = TextPacker(GRAPH_TOKENIZER, WORD_VOCABULARY, max_seq_length=8)


def test_a_text_stands_between_cls_and_sep_and_shorter_rows_are_padded():
    ids, mask, segments = (
        array.numpy().tolist() for array in PACKER(["the dog", "dogs run."]).inputs
    )
    assert ids == [[2, 5, 6, 3, 0, 0], [2, 6, 15, 1, 13, 3]]
    assert mask == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    assert segments == [[0] * 6, [0] * 6]


def test_a_pair_has_two_segments():
    ids, _, segments = (array.numpy().tolist() for array in PACKER(["the dog"], ["runs"]).inputs)
    assert ids == [[2, 5, 6, 3, 8, 3]]
    assert segments == [[0, 0, 0, 0, 1, 1]]


@pytest.mark.parametrize("batch", [[], [""], ["", "the"]])
def test_a_batch_may_be_empty_and_so_may_a_text(batch):
    ids, mask, _ = PACKER(tf.constant(batch, tf.string)).inputs
    assert len(ids) == len(batch)
    assert mask.numpy().sum(axis=1).tolist() == [3 if text else 2 for text in batch]


def test_a_second_text_without_tokens_counts_as_none():
    packed = PACKER(["the dog"] * 2, ["", "a"]).inputs
    ids, mask, segments = (array.numpy().tolist() for array in packed)
    assert ids == [[2, 5, 6, 3, 0, 0], [2, 5, 6, 3, 10, 3]]
    assert mask == [[1, 1, 1, 1, 0, 0], [1] * 6]
    assert segments == [[0] * 6, [0, 0, 0, 0, 1, 1]]


LENGTH = 9
WAYS = {
    "truncate": LongTexts(),
    "head_tail": LongTexts(long_text="head_tail"),
    "windows": LongTexts(long_text="windows", doc_stride=2),
    "windows without overlap": LongTexts(long_text="windows", doc_stride=100),
}
PACKERS = {
    name: graph_function(
        TextPacker(GRAPH_TOKENIZER, WORD_VOCABULARY, LENGTH, way), text_specs("text_a", "text_b")
    )
    for name, way in WAYS.items()
}
long_texts = st.lists(st.sampled_from([*WORDS[:9], "unknown"]), max_size=20).map(" ".join)


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=10)
@given(pairs=st.lists(st.tuples(long_texts, long_texts), min_size=1, max_size=8))
def test_the_graph_packs_long_texts_as_training_does(name, pairs):
    found = PACKERS[name](*(tf.constant(side) for side in zip(*pairs, strict=True)))
    examples = [TextExample(str(number), *pair) for number, pair in enumerate(pairs)]
    rows = text_rows(examples, TOKENIZER, LENGTH, WAYS[name])
    np.testing.assert_array_equal(found.text, rows.examples)
    expected = rows.padded(int(rows.lengths.max()))
    for array, wanted in zip(found.inputs, expected.values(), strict=False):
        np.testing.assert_array_equal(array, wanted)


def test_a_batch_of_long_texts_may_be_empty():
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


MASK_ID, CLS_ID, SEP_ID = (WORD_VOCABULARY.mask_id, WORD_VOCABULARY.cls_id, WORD_VOCABULARY.sep_id)
KEEPING_TOKENIZER = GraphTokenizer(TextSettings(WORD_VOCABULARY), special_tokens="keep")
MAX_LENGTH = 8
MASKED_PACKER = graph_function(
    MaskedTextPacker(KEEPING_TOKENIZER, WORD_VOCABULARY, MAX_LENGTH), text_specs("texts")
)


def test_mask_is_found_wherever_it_stands():
    packed = MASKED_PACKER(tf.constant(["the [MASK] runs", "[MASK]s[MASK]."]))
    assert packed.input_ids.numpy().tolist() == [
        [CLS_ID, 5, MASK_ID, 8, SEP_ID, 0],
        [CLS_ID, MASK_ID, 1, MASK_ID, 13, SEP_ID],
    ]
    assert packed.masked_lm_positions.numpy().tolist() == [[2, 0], [1, 3]]
    assert packed.mask_counts.numpy().tolist() == [1, 2]
    assert packed.input_mask.numpy().tolist() == [[1, 1, 1, 1, 1, 0], [1] * 6]
    assert packed.num_truncated.numpy().tolist() == [0, 0]


def test_a_long_text_is_read_around_its_first_mask():
    text = "a a a a a dog [MASK] runs [MASK] . . . [MASK] . ."
    packed = MASKED_PACKER(tf.constant([text]))
    tokens = [WORD_VOCABULARY.tokens[number] for number in packed.input_ids.numpy()[0]]
    assert tokens == ["[CLS]", "a", "a", "dog", "[MASK]", "runs", "[MASK]", "[SEP]"]
    assert packed.mask_counts.numpy().tolist() == [2]
    assert packed.num_truncated.numpy().tolist() == [9]


def test_near_an_end_of_a_long_text_all_room_is_used():
    start, end = MASKED_PACKER(
        tf.constant(["[MASK]" + " a" * 9, "a " * 9 + "[MASK]"])
    ).input_ids.numpy()
    assert start.tolist() == [CLS_ID, MASK_ID, 10, 10, 10, 10, 10, SEP_ID]
    assert end.tolist() == [CLS_ID, 10, 10, 10, 10, 10, MASK_ID, SEP_ID]


def test_a_text_without_mask_and_an_empty_batch_have_no_positions():
    assert MASKED_PACKER(tf.constant(["the dog", ""])).masked_lm_positions.shape == (2, 0)
    assert MASKED_PACKER(tf.constant([], tf.string)).input_ids.shape[0] == 0


words = st.lists(st.sampled_from([*WORDS[:9], "unknown", "[MASK]", "[MASK]"]), max_size=14)


@settings(max_examples=15, deadline=None)
@given(st.lists(words.map(" ".join), min_size=1, max_size=12))
def test_what_is_packed_is_a_stretch_of_the_text_with_the_first_mask_in_it(texts):
    tokenizer = Tokenizer(TextSettings(WORD_VOCABULARY), special_tokens="keep")
    packed = MASKED_PACKER(tf.constant(texts))
    for row, text in enumerate(texts):
        ids, length = tokenizer.encode(text), int(packed.input_mask[row].numpy().sum())
        inner = packed.input_ids[row, 1 : length - 1].numpy().tolist()
        assert len(inner) == min(len(ids), MAX_LENGTH - 2)
        assert len(inner) + packed.num_truncated[row] == len(ids)
        assert any(ids[at : at + len(inner)] == inner for at in range(len(ids) - len(inner) + 1))
        positions = packed.masked_lm_positions[row, : packed.mask_counts[row]].numpy()
        assert (packed.input_ids[row].numpy()[positions] == MASK_ID).all()
        assert len(positions) == inner.count(MASK_ID)
        assert (MASK_ID in ids) == (MASK_ID in inner)
        assert np.count_nonzero(packed.segment_ids[row]) == 0
