"""How far a mean over questions would move with other articles: intervals by the bootstrap.

Questions about one article resemble one another, so articles are drawn (with replacement, as many
as there are), each with all its questions; an interval over single questions would be too narrow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SAMPLES = 2000
SHARE = 0.95


class Interval(NamedTuple):
    """Where a mean lies in most samples.

    Attributes:
        low: less than this are 2.5 % of the samples' means.
        high: more than this are 2.5 %.
    """

    low: float
    high: float


def bootstrap_interval(
    values: Sequence[float], groups: Sequence[str], samples: int = SAMPLES, seed: int = 0
) -> Interval | None:
    """The interval that holds 95 % of the means of resampled groups.

    Args:
        values: what the mean is of.
        groups: the group that each value belongs to.
        samples: how often to draw.
        seed: fixes the draws.

    Returns:
        None where there are fewer than two groups.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"])
        Interval(low=0.0, high=1.0)
    """
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    count = int(numbers.max(initial=-1)) + 1
    if count < 2:
        return None
    totals = np.bincount(numbers, np.asarray(values, np.float64), count)
    sizes = np.bincount(numbers, minlength=count)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), samples)
    means = drawn @ totals / (drawn @ sizes)  # [samples]
    tail = 50 * (1 - SHARE)
    return Interval(*np.percentile(means, [tail, 100 - tail]).tolist())
