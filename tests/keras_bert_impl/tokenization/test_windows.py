"""Windows in NumPy and in a graph, held to one list of cases and to a plain loop."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.graph_windows import owned_in_graph, windows_in_graph
from keras_bert_impl.tokenization.windows import make_windows, owned_tokens, window_tokens

# lengths of the documents, size, stride: (document, start, end) of each window
CASES = [
    ([], 4, 2, []),
    ([0], 4, 2, [(0, 0, 0)]),
    ([1], 1, 1, [(0, 0, 1)]),
    ([4], 4, 2, [(0, 0, 4)]),
    ([5], 4, 2, [(0, 0, 4), (0, 2, 5)]),
    ([6], 4, 2, [(0, 0, 4), (0, 2, 6)]),
    ([7, 0, 3], 4, 2, [(0, 0, 4), (0, 2, 6), (0, 4, 7), (1, 0, 0), (2, 0, 3)]),
    ([7], 3, 9, [(0, 0, 3), (0, 3, 6), (0, 6, 7)]),  # a stride over the size leaves no gap
    ([5, 5], [2, 4], 1, [(0, 0, 2), (0, 1, 3), (0, 2, 4), (0, 3, 5), (1, 0, 4), (1, 1, 5)]),
]


def plain_windows(lengths, size, stride):
    """A loop over one document after the other."""
    for document, length in enumerate(lengths):
        start = 0
        while True:
            end = min(start + size, length)
            yield document, start, end
            if end == length:
                break
            start += min(size, stride)


def plain_owners(windows):
    """For each token of each document, the window that shows most around it."""
    owners = {}
    for number, (document, start, end) in enumerate(windows):
        for position in range(start, end):
            context = min(position - start, end - 1 - position) + 0.01 * (end - start)
            if context > owners.get((document, position), (-1.0, 0))[0]:
                owners[document, position] = context, number
    return {token: number for token, (_, number) in owners.items()}


def as_list(windows):
    return list(zip(*(np.asarray(array).tolist() for array in windows), strict=True))


@pytest.mark.parametrize(("lengths", "size", "stride", "expected"), CASES)
def test_cases_in_numpy_and_in_a_graph(lengths, size, stride, expected):
    windows = make_windows(lengths, size, stride)
    assert as_list(windows) == expected
    in_graph = windows_in_graph(tf.constant(lengths, tf.int32), size, stride)
    assert as_list(in_graph) == expected
    owned = owned_tokens(windows)
    np.testing.assert_array_equal(owned_in_graph(in_graph).flat_values, owned)
    assert owned.sum() == sum(lengths)
    np.testing.assert_array_equal(in_graph.is_first(), windows.is_first())
    np.testing.assert_array_equal(in_graph.is_last(), windows.is_last())
    assert windows.is_last().sum() == windows.is_first().sum() == len(lengths)


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
    graph = owned_in_graph(windows_in_graph(tf.constant(lengths, tf.int64), size, stride))
    np.testing.assert_array_equal(graph.flat_values, owned)


def test_a_stride_or_a_window_without_tokens_is_refused():
    with pytest.raises(UserError, match="doc_stride=0 never reaches the next window"):
        make_windows([3], 2, 0)
    with pytest.raises(UserError, match="max_seq_length leaves no token"):
        make_windows([3, 3], [2, 0], 1)
