import itertools

import numpy as np

from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.text_rows import TextExample, join_windows, text_rows
from tests.support.model_folders import WORD_VOCABULARY

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))


def features(*examples, length=8):
    texts = [TextExample(str(n), *e) for n, e in enumerate(examples)]
    return text_rows(texts, TOKENIZER, length).padded(length)


def test_single_texts_and_pairs_become_padded_rows():
    found = features(("The dog.",), ("the dog", "runs"))
    assert found["input_ids"].tolist() == [[2, 5, 6, 13, 3, 0, 0, 0], [2, 5, 6, 3, 8, 3, 0, 0]]
    assert found["input_mask"].tolist() == [[1, 1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]]
    assert found["segment_ids"].tolist() == [[0] * 8, [0, 0, 0, 0, 1, 1, 0, 0]]
    assert {array.dtype for array in found.values()} == {np.dtype(np.int32)}


def test_a_second_text_without_tokens_counts_as_none():
    found = features(("the dog", ""), ("the dog", "  "), ("the dog",))
    assert found["input_ids"].tolist() == [[2, 5, 6, 3, 0, 0, 0, 0]] * 3


def test_the_longer_text_of_a_pair_is_cut_first():
    found = features(("the dog", "a list a list a list"), length=8)
    assert found["input_ids"].tolist() == [[2, 5, 6, 3, 10, 11, 10, 3]]


def token_rows(rows):
    """The tokens of each row, as words."""
    tokens, offsets = WORD_VOCABULARY.tokens, rows.offsets()
    ids = rows.tokens["input_ids"]
    return [
        " ".join(tokens[token] for token in ids[start:end])
        for start, end in itertools.pairwise(offsets)
    ]


def rows_of(*examples, length, **ways):
    texts = [TextExample(str(n), *e) for n, e in enumerate(examples)]
    return text_rows(texts, TOKENIZER, length, LongTexts(**ways))


def test_a_long_text_keeps_its_two_ends():
    rows = rows_of(
        ("the dog runs a list value cat",), ("the dog",), length=6, long_text="head_tail"
    )
    assert token_rows(rows) == ["[CLS] the list value cat [SEP]", "[CLS] the dog [SEP]"]


def test_windows_cover_a_long_text_and_overlap():
    rows = rows_of(
        ("the dog runs a list value cat",),
        ("the dog",),
        ("",),
        length=6,
        long_text="windows",
        doc_stride=2,
    )
    assert token_rows(rows) == [
        "[CLS] the dog runs a [SEP]",
        "[CLS] runs a list value [SEP]",
        "[CLS] list value cat [SEP]",
        "[CLS] the dog [SEP]",
        "[CLS] [SEP]",
    ]
    assert rows.examples.tolist() == [0, 0, 0, 1, 2]


def test_windows_of_a_pair_have_the_first_text_in_front():
    rows = rows_of(("dog", "the cat runs a list value"), length=7, long_text="windows")
    assert token_rows(rows) == [
        "[CLS] dog [SEP] the cat runs [SEP]",
        "[CLS] dog [SEP] a list value [SEP]",
    ]
    assert rows.padded(7)["segment_ids"].tolist() == [[0, 0, 0, 1, 1, 1, 1]] * 2


def test_a_text_counts_once_however_many_windows_it_has():
    rows = rows_of(("a " * 40,), ("dog",), ("cat " * 9,), length=6, long_text="windows")
    weights = np.bincount(rows.examples, rows.values["example_weights"])
    np.testing.assert_allclose(weights, [1, 1, 1], rtol=1e-6)


def test_answers_of_windows_are_joined_by_mean_or_maximum():
    rows = rows_of(("a " * 8,), ("dog",), length=6, long_text="windows")
    logits = np.array([[1, 5], [3, -1], [7, 8]], np.float32)
    assert join_windows(rows, logits, "mean").tolist() == [[2, 2], [7, 8]]
    assert join_windows(rows, logits, "max").tolist() == [[3, 5], [7, 8]]
