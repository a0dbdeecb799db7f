"""What becomes of long texts: the options, and how a row is divided in NumPy and in a graph."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.long_texts import LongTexts, head_length, window_room

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
