import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipelines.many_runs.spread import (
    Spread,
    differs_significantly,
    shared_letters,
    welch_interval,
)

SCORES = st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=2, max_size=5)


def test_the_interval_is_that_of_scipy():
    first, second = [1.0, 2.0, 3.5, 2.2], [4.0, 4.5, 6.1]
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert welch_interval(first, second) == pytest.approx((found.low, found.high))


def test_scores_that_are_all_alike_have_an_interval_of_one_number():
    assert welch_interval([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0)
    assert differs_significantly([2.0, 2.0], [1.0, 1.0])
    assert not differs_significantly([2.0, 2.0], [2.0, 2.0])


def test_of_a_single_run_nothing_is_known():
    assert not differs_significantly([1.0], [5.0, 5.1])


@given(st.lists(SCORES, min_size=1, max_size=6))
def test_two_fields_share_a_letter_exactly_where_they_cannot_be_differs_significantly(groups):
    letters = shared_letters(groups)
    for one, first in zip(letters, groups, strict=True):
        assert one
        for other, second in zip(letters, groups, strict=True):
            if first is not second:
                assert bool({*one} & {*other}) != differs_significantly(first, second)


def test_the_best_has_the_first_letter_and_an_empty_field_none():
    groups = [[0.5, 0.51], [0.9, 0.91], [], [0.9, 0.7]]
    letters = shared_letters(groups)
    assert "a" in letters[1]
    assert letters[2] == ""


def test_a_spread_is_that_of_numpy():
    values = np.random.default_rng(1).random(9)
    spread = Spread.of(values.tolist())
    assert spread.mean == pytest.approx(values.mean())
    assert spread.sigma == pytest.approx(values.std(ddof=1))
    assert spread.median == pytest.approx(np.median(values))
    assert (spread.minimum, spread.maximum) == (values.min(), values.max())
    assert str(spread) == f"{values.mean():.4f} ± {values.std(ddof=1):.4f}"


def test_one_run_has_no_deviation():
    assert math.isnan(Spread.of([0.75]).sigma)
    assert str(Spread.of([0.75])) == "0.7500"
