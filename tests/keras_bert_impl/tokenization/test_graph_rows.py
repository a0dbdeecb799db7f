"""Windows in a graph, held to the cases of those in NumPy and to these themselves."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.graph_rows import (
    first_of,
    owned_in_graph,
    stretch_of,
    window_contents,
    windows_in_graph,
)
from keras_bert_impl.tokenization.long_texts import make_windows, owned_tokens, window_tokens
from tests.support.window_cases import as_list


@settings(max_examples=40)
@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 12), st.integers(1, 15))
def test_windows_are_those_of_numpy(lengths, size, stride):
    offline = make_windows(lengths, size, stride)
    windows = windows_in_graph(tf.constant(lengths, tf.int64), size, stride)
    assert as_list(windows) == as_list(offline)
    np.testing.assert_array_equal(owned_in_graph(windows).flat_values, owned_tokens(offline))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 12))
def test_the_contents_of_windows_are_their_tokens(lengths, size):
    tokens = tf.RaggedTensor.from_row_lengths(tf.range(sum(lengths)), lengths)
    contents = window_contents(tokens, windows_in_graph(tokens.row_lengths(), size, 3))
    windows = make_windows(lengths, size, 3)
    number, position = window_tokens(windows)
    firsts = np.cumsum(lengths) - lengths
    expected = firsts[windows.document[number]] + position
    np.testing.assert_array_equal(contents.flat_values, expected)
    np.testing.assert_array_equal(contents.row_lengths(), windows.lengths)


def test_a_row_ends_where_it_ends_whatever_is_asked_of_it():
    rows = tf.ragged.constant([[1, 2, 3], [], [4]])
    assert first_of(rows, [5, 1, 9]).to_list() == [[1, 2, 3], [], [4]]
    assert stretch_of(rows, [1, 4, 2], [8, 6, 3]).to_list() == [[2, 3], [], []]
