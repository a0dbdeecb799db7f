import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.double_array import build_double_array, look_up

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0").map(str.encode)
VALUES = st.integers(0, 2**31 - 1)


@given(st.dictionaries(CHARACTERS, VALUES, min_size=1, max_size=200), st.lists(CHARACTERS))
def test_every_key_has_its_value_and_no_other_key_has_one(entries, others):
    units = build_double_array(entries)
    for key in [*entries, *others]:
        assert look_up(units, key) == entries.get(key)


def test_the_beginning_of_a_key_can_be_a_key():
    units = build_double_array({b"\xe4": 1, b"\xe4\xb8": 2, b"\xe4\xb8\xad": 3})
    keys = [b"\xe4", b"\xe4\xb8", b"\xe4\xb8\xad", b"\xe4\xb8\xae", b"\xb8"]
    assert [look_up(units, key) for key in keys] == [1, 2, 3, None, None]


def test_no_walk_leaves_the_array():
    units = build_double_array({"é".encode(): 1, b"a": 2})
    assert units.size % 256 == 0
    for first in range(256):
        for second in range(256):
            look_up(units, bytes([first, second]))


def test_a_trie_that_is_too_large_for_its_offsets_is_refused():
    keys = {
        bytes([a, b, c, d]): 1
        for a in range(128)
        for b in range(128, 256)
        for c in (200,)
        for d in (200,)
    }
    with pytest.raises(ValueError, match="units"):
        build_double_array(keys)
