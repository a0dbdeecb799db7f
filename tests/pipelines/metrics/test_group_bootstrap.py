"""Intervals over articles."""

import numpy as np
import pytest

from pipelines.metrics.group_bootstrap import bootstrap_interval


def test_the_interval_is_that_of_the_mean_of_groups():
    """Of one value a group it is nearly the normal one: 1.96 standard errors on both sides."""
    values = np.random.default_rng(1).normal(5.0, 2.0, 400)
    low, high = bootstrap_interval(values, [f"{n}" for n in range(400)])
    error = values.std() / 20
    assert (low, high) == pytest.approx(
        (values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.03
    )


def test_it_is_the_same_every_time_and_needs_two_groups():
    arguments = [1.0, 0.0, 0.5], ["a", "b", "a"]
    assert bootstrap_interval(*arguments) == bootstrap_interval(*arguments)
    assert bootstrap_interval([1.0, 0.0], ["a", "a"]) is None
    assert bootstrap_interval([], []) is None
