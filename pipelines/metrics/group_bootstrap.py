"""How far a figure would move with other articles or documents: intervals by the bootstrap.

Questions about one article resemble one another, so articles are drawn (with replacement, as many
as there are), each with all its questions; an interval over single questions would be too narrow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

SAMPLES = 2000
SHARE = 0.95


class Interval(NamedTuple):
    """Where a mean lies in most samples."""

    low: float
    high: float


def resampled_totals(counts: ArrayLike) -> NDArray[np.float64]:
    """The sums [samples, figures] of counts [groups, figures] over groups drawn with replacement.

    The same number of groups gives the same draws, so figures of two systems may be subtracted
    sample by sample.
    """
    table = np.asarray(counts, np.float64)
    groups = len(table)
    drawn = np.random.default_rng(0).multinomial(groups, np.full(groups, 1 / groups), SAMPLES)
    return drawn @ table


def interval_of(figures: NDArray[np.float64]) -> Interval:
    """The interval that holds 95 % of the figures of some samples."""
    tail = 50 * (1 - SHARE)
    return Interval(*np.percentile(figures, [tail, 100 - tail]).tolist())


def bootstrap_interval(values: Sequence[float], groups: Sequence[str]) -> Interval | None:
    """The interval that holds 95 % of the means of resampled groups; None of fewer than two."""
    names, numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < 2:
        return None
    sums = resampled_totals(np.stack([np.bincount(numbers, values), sizes], axis=-1))
    return interval_of(sums[:, 0] / sums[:, 1])
