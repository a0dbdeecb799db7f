import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pretraining_data.draws import (
    Purpose,
    draw,
    example_keys,
    happens,
    key_ranges,
    seed_word,
)

KEYS = example_keys(np.arange(20_000, dtype=np.uint64), seed_word(1))


def test_draws_are_pinned():
    """A change here changes every data set ever made with a seed."""
    keys = example_keys(np.array([0, 1, 2**40], np.uint64), seed_word(12345))
    assert [hex(key) for key in keys.tolist()] == [
        "0x38a7bf120b939a89",
        "0x88c1ecf524f75cb2",
        "0x2e1e05f7640b9350",
    ]


def test_purposes_and_indexes_do_not_share_draws():
    draws = [draw(KEYS[:100], purpose, index) for purpose in Purpose for index in range(3)]
    assert len(np.unique(np.concatenate(draws))) == len(draws) * 100


def test_happens_as_often_as_said():
    assert abs(happens(draw(KEYS, Purpose.NEXT), 0.1).mean() - 0.1) < 0.01
    assert not happens(draw(KEYS, Purpose.NEXT), 0.0).any()
    assert happens(draw(KEYS, Purpose.NEXT), 1.0).all()


@given(st.integers(1, 300))
def test_key_ranges_cover_all_keys_once(parts):
    ranges = key_ranges(0, 1 << 64, parts)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 1 << 64
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ranges))
