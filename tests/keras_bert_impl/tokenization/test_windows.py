"""Windows over long texts, held to a list of cases and to a plain loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.windows import make_windows, owned_tokens, window_tokens
from tests.support.window_cases import CASES, as_list, plain_owners, plain_windows


@pytest.mark.parametrize(("lengths", "size", "stride", "expected"), CASES)
def test_cases(lengths, size, stride, expected):
    windows = make_windows(lengths, size, stride)
    assert as_list(windows) == expected
    assert owned_tokens(windows).sum() == sum(lengths)
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


def test_a_stride_or_a_window_without_tokens_is_refused():
    with pytest.raises(UserError, match="`doc_stride=0` never reaches the next window"):
        make_windows([3], 2, 0)
    with pytest.raises(UserError, match="`max_seq_length` leaves no token"):
        make_windows([3, 3], [2, 0], 1)
