"""Correlations, held to what SciPy 1.17.1 gave for the same numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.correlation import pearson_correlation, spearman_correlation

# fmt: off
RECORDED = [
    (
        [4.201, 0.562, 3.019, 2.396, 2.973, 3.296, 1.533, 4.807, 2.329, 3.141, 3.176, 0.919, 0.309,
         2.058, 3.82],
        [2.5, 0.0, 5.0, 1.75, 3.5, 3.25, 0.75, 4.0, 3.25, 2.75, 3.0, 1.0, 2.0, 3.0, 4.5],
        0.7246945687946132, 0.640430362855462,
    ),
    (  # ties on both sides
        [1, 1, 2, 2, 3, 3, 3.5, 0], [0, 1, 1, 2, 2, 2, 5, 5.0],
        0.10486258199911004, 0.32710225430843876,
    ),
]
# fmt: on


@pytest.mark.parametrize(("predictions", "labels", "pearson", "spearman"), RECORDED)
def test_correlations_equal_the_recorded_ones(predictions, labels, pearson, spearman):
    assert pearson_correlation(predictions, labels) == pytest.approx(pearson, abs=1e-14)
    assert spearman_correlation(predictions, labels) == pytest.approx(spearman, abs=1e-14)


def test_a_constant_prediction_has_no_correlation():
    assert math.isnan(pearson_correlation([2, 2, 2], [1, 2, 3]))
    assert math.isnan(spearman_correlation([1, 2, 3], [5, 5, 5]))


def test_a_rising_curve_is_a_perfect_rank_correlation():
    values = np.arange(10.0)
    assert spearman_correlation(np.exp(values), values) == pytest.approx(1.0, abs=1e-14)
    assert spearman_correlation(-(values**3), values) == pytest.approx(-1.0, abs=1e-14)


def test_equal_values_share_the_mean_of_their_ranks():
    labels = [1.0, 2.0, 3.0, 4.0, 5.0]  # their own ranks
    ranks = [4.0, 1.0, 4.0, 2.0, 4.0]
    found = spearman_correlation([5.0, 1.0, 5.0, 3.0, 5.0], labels)
    assert found == pytest.approx(pearson_correlation(ranks, labels), abs=1e-14)


def test_tiny_and_huge_values_are_not_lost():
    values = np.array([1.0, 2.0, 4.0, 3.0])
    expected = pearson_correlation(values, [1, 2, 3, 4])
    assert pearson_correlation(values * 1e-200, [1, 2, 3, 4]) == pytest.approx(expected)
    assert pearson_correlation(values * 1e200, [1, 2, 3, 4]) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=2, max_size=30))
def test_correlations_lie_between_minus_one_and_one_and_are_symmetric(pairs):
    left, right = np.array(pairs, np.float64).T
    for correlation in (pearson_correlation, spearman_correlation):
        one_way, other_way = correlation(left, right), correlation(right, left)
        assert math.isnan(one_way) or -1.0 <= one_way <= 1.0
        assert one_way == other_way or (math.isnan(one_way) and math.isnan(other_way))


@pytest.mark.parametrize("lists", [([1.0, 2.0], [1.0]), ([], [])])
def test_no_or_uneven_numbers_are_refused(lists):
    with pytest.raises(ValueError, match="must be two vectors of one length"):
        pearson_correlation(*lists)


def test_a_single_pair_has_no_correlation():
    assert np.isnan(pearson_correlation([1.0], [2.0]))
    assert np.isnan(spearman_correlation([1.0], [2.0]))
