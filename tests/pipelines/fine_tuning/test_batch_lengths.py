"""The lengths of batches: at most eight, with the least padding that so many can give."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.fine_tuning import row_batches
from pipelines.fine_tuning.row_batches import BatchLengths

LONGEST = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def positions(allowed, longest):
    """What batches are computed with, counted one by one."""
    return sum(min(length for length in allowed if length >= each) for each in longest)


def least_of_all_choices(longest, enough, most):
    """By trying every choice of lengths."""
    choices = range(1, enough)
    return min(
        positions((*chosen, enough), longest)
        for count in range(most)
        for chosen in itertools.combinations(choices, count)
    )


@settings(max_examples=60)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(0, 3), st.integers(1, 4))
def test_no_other_lengths_give_less_padding(longest, more, most):
    enough = max(longest) + more
    kept, row_batches.MAX_LENGTHS = row_batches.MAX_LENGTHS, most
    try:
        found = BatchLengths.fitted(np.array(longest), enough).allowed
    finally:
        row_batches.MAX_LENGTHS = kept
    assert len(found) <= most
    # The longest row of all counts as a batch: it may come in a batch that was not counted.
    assert positions(found, [*longest, enough]) == enough + least_of_all_choices(
        longest, enough, most
    )


@given(LONGEST, st.integers(0, 100))
def test_every_batch_has_a_length_that_is_long_enough(longest, more):
    enough = max(longest) + more
    lengths = BatchLengths.fitted(np.array(longest), enough)
    assert len(lengths.allowed) <= 8
    assert list(lengths.allowed) == sorted(set(lengths.allowed))
    for each in (*longest, enough):
        assert lengths.of(np.array([each, 0])) >= each


def test_a_batch_without_a_token_has_positions():
    assert BatchLengths.fitted(np.array([0]), 0).allowed == (1,)
    assert BatchLengths.fitted(np.arange(20), 20).of(np.array([0])) >= 1


def test_a_fixed_length_is_that_of_every_batch():
    assert BatchLengths.fixed(128).of(np.array([1])) == 128
