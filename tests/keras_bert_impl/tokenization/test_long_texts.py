"""What becomes of long texts: the options, and how a row is divided in NumPy and in a graph."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.long_texts import (
    LongTexts,
    head_length,
    make_windows,
    owned_tokens,
    window_room,
    window_tokens,
)
from tests.support.window_cases import CASES, as_list, plain_owners, plain_windows

lengths = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=9)


@pytest.mark.parametrize(
    "texts",
    [
        LongTexts(),
        LongTexts(long_text="head_tail"),
        LongTexts(long_text="windows", doc_stride=9, window_answers="max"),
    ],
)
def test_a_model_directory_gives_back_what_was_written_into_it(texts):
    assert LongTexts.from_settings({"task": "x", "max_seq_length": 9, **texts.settings}) == texts


def test_the_stride_of_another_task_is_not_taken():
    assert LongTexts.from_settings({"doc_stride": 3}) == LongTexts()


@pytest.mark.parametrize(
    "values", [{"long_text": "cut"}, {"doc_stride": 0}, {"window_answers": ""}]
)
def test_values_that_make_no_sense_are_refused(values):
    with pytest.raises(UserError, match=f"`{next(iter(values))}="):
        LongTexts(**values)


def test_a_quarter_of_what_stays_is_the_beginning():
    assert head_length(np.array([0, 1, 4, 100, 510])).tolist() == [0, 0, 1, 25, 127]


@given(lengths, st.integers(5, 64))
def test_a_row_is_divided_between_the_first_text_and_the_window(pairs, max_seq_length):
    length_a, length_b = np.array(pairs).T
    front, size = window_room(length_a, length_b, max_seq_length)
    for a, b, kept, window in zip(length_a, length_b, front, size, strict=True):
        room = max_seq_length - (3 if b else 2)
        assert kept + window == room
        assert window >= 1
        if not b:
            assert kept == 0
        elif a + b <= room:
            assert (kept, window >= b) == (a, True)  # nothing is lost: one window
        else:
            assert kept == min(a, max(room // 2, room - b))


@given(lengths, st.integers(5, 64))
def test_the_graph_divides_rows_alike(pairs, max_seq_length):
    length_a, length_b = np.array(pairs, np.int64).T
    expected = window_room(length_a, length_b, max_seq_length)
    found = window_room(tf.constant(length_a), tf.constant(length_b), max_seq_length, tf)
    np.testing.assert_array_equal([array.numpy() for array in found], expected)


@pytest.mark.parametrize(("lengths", "size", "stride", "expected"), CASES)
def test_cases(lengths, size, stride, expected):
    windows = make_windows(lengths, size, stride)
    assert as_list(windows) == expected
    assert owned_tokens(windows).sum() == sum(lengths)
    assert windows.is_last().sum() == len(lengths)


@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 12), st.integers(1, 15))
def test_windows_are_those_of_a_plain_loop(lengths, size, stride):
    expected = list(plain_windows(lengths, size, stride))
    windows = make_windows(lengths, size, stride)
    assert as_list(windows) == expected
    number, position = window_tokens(windows)
    assert len(number) == windows.lengths.sum()
    document = windows.document[number]
    owned = owned_tokens(windows)
    found = zip(document[owned].tolist(), position[owned].tolist(), strict=True)
    assert dict(zip(found, number[owned].tolist(), strict=True)) == plain_owners(expected)


def test_a_stride_or_a_window_without_tokens_is_refused():
    with pytest.raises(UserError, match="`doc_stride=0` never reaches the next window"):
        make_windows([3], 2, 0)
    with pytest.raises(UserError, match="`max_seq_length` leaves no token"):
        make_windows([3, 3], [2, 0], 1)
