import pytest
from scipy import stats

from pipelines.studies.scores import differs_significantly, welch_interval


def test_the_interval_is_that_of_scipy():
    first, second = [1.0, 2.0, 3.5, 2.2], [4.0, 4.5, 6.1]
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert welch_interval(first, second) == pytest.approx((found.low, found.high))


def test_scores_that_are_all_alike_have_an_interval_of_one_number():
    assert welch_interval([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0)
    assert differs_significantly([2.0, 2.0], [1.0, 1.0])
    assert not differs_significantly([2.0, 2.0], [2.0, 2.0])
