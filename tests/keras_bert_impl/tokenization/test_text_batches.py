import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.packing import as_texts, pack_batch
from tests.support.model_folders import WORD_VOCABULARY

IDS = st.lists(st.integers(5, 12), max_size=12)


@pytest.mark.parametrize(
    ("texts", "text_pairs", "expected"),
    [
        ("one", None, (["one"], None)),
        (b"one", None, ([b"one"], None)),
        (["one", "two"], None, (["one", "two"], None)),
        (np.array(["one", "two"]), None, (["one", "two"], None)),
        (tf.constant(["one", "two"]), None, ([b"one", b"two"], None)),
        (tf.constant("one"), None, ([b"one"], None)),
        ([], None, ([], None)),
        (("one", "two"), None, (["one"], ["two"])),
        ([("one", "two")], None, (["one"], ["two"])),
        ([["one", "two"], ["a", "b"]], None, (["one", "a"], ["two", "b"])),
        ("one", "two", (["one"], ["two"])),
        (["one", "a"], ["two", "b"], (["one", "a"], ["two", "b"])),
    ],
)
def test_texts_are_understood_in_every_form_that_has_one_meaning(texts, text_pairs, expected):
    assert as_texts(texts, text_pairs) == expected


@pytest.mark.parametrize(
    ("texts", "text_pairs", "sentence"),
    [
        (["one", None], None, "text 1 is None; give a text, a list of texts or a list of pairs."),
        ([1], None, "text 0 is 1;"),
        (["one", ("a", "b")], None, r"text 1 is \('a', 'b'\);"),
        ([("a", "b", "c")], None, r"text 0 is \('a', 'b', 'c'\);"),
        (["one"], ["two", "three"], "there are 1 texts, but 2 second texts; give as many."),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(texts, text_pairs, sentence):
    with pytest.raises(UserError, match=sentence):
        as_texts(texts, text_pairs)


def packed(first, second, most):
    """The ids and segments of a row: the longer segment loses first, B where both are as long."""
    a, b, more = [*first], [*second], bool(second)
    while len(a) + len(b) > most - 2 - more:
        (a if len(a) > len(b) else b).pop()
    cls, sep = WORD_VOCABULARY.cls_id, WORD_VOCABULARY.sep_id
    in_b = [*b, sep] if more else []
    return [cls, *a, sep, *in_b], [0] * (len(a) + 2) + [1] * len(in_b)


@given(st.lists(st.tuples(IDS, IDS), max_size=4), st.booleans(), st.integers(3, 20))
def test_a_batch_is_its_rows_packed_one_by_one(rows, pairs, max_seq_length):
    first, second = [a for a, _ in rows], [b for _, b in rows] if pairs else None
    whole = pack_batch(first, second, WORD_VOCABULARY, max_seq_length, pad_to_longest=False)
    for (a, b), ids, mask, segments in zip(rows, *whole.values(), strict=True):
        row, numbers = packed(a, b if pairs else [], max_seq_length)
        left = max_seq_length - len(row)
        assert ids.tolist() == row + [WORD_VOCABULARY.pad_id] * left
        assert mask.tolist() == [1] * len(row) + [0] * left
        assert segments.tolist() == numbers + [0] * left
    short = pack_batch(first, second, WORD_VOCABULARY, max_seq_length)
    length = short["input_ids"].shape[1]
    assert length == max(whole["input_mask"].sum(axis=1), default=2)
    for name, values in short.items():
        assert values.dtype == np.int32
        np.testing.assert_array_equal(values, whole[name][:, :length])
