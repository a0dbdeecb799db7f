"""Whether scores differ: intervals, letters for what cannot be told apart, and the first check.

Two fields of a table are told apart if Welch's interval of the difference of their means, at 95 %,
leaves out 0 (Welch 1947, "The generalization of Student's problem when several different population
variances are involved"). No correction is made for the number of pairs. Fields that share a letter
cannot be told apart (Piepho 2004, "An algorithm for a letter-based representation of all-pairwise
comparisons").
"""

import math
import statistics
from collections.abc import Sequence
from itertools import combinations

LEVEL = 0.95
SIGMAS = 3.0
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def welch_interval(
    first: Sequence[float], second: Sequence[float], level: float = LEVEL
) -> tuple[float, float]:
    """The interval of the difference of two means.

    Args:
        first: scores; at least two.
        second: scores; at least two.
        level: how sure to be.

    Returns:
        Both ends of the mean of `first` minus that of `second`.

    Example:
        >>> low, high = welch_interval([1.0, 2.0, 3.0], [1.0, 2.0, 6.0])
        >>> round(low, 2), round(high, 2)
        (-6.74, 4.74)
    """
    from scipy import stats

    difference = statistics.fmean(first) - statistics.fmean(second)
    parts = [statistics.variance(scores) / len(scores) for scores in (first, second)]
    if not (error := math.sqrt(sum(parts))):
        return difference, difference
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(scores) - 1) for part, scores in zip(parts, (first, second), strict=True)
    )
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return difference - reach, difference + reach


def told_apart(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two sets of scores differ; of a single score nobody knows.

    Example:
        >>> told_apart([1.0, 1.1], [5.0, 5.1]), told_apart([1.0, 1.1], [9.0])
        (True, False)
    """
    if min(len(first), len(second)) < 2:
        return False
    low, high = welch_interval(first, second)
    return not low <= 0.0 <= high


def shared_letters(groups: Sequence[Sequence[float]]) -> list[str]:
    """Letters for sets of scores: two that share one cannot be told apart, all others can.

    Args:
        groups: the scores of each field of a column; empty where there are none yet.

    Returns:
        The letters of each; "a" is with the best.

    Example:
        >>> shared_letters([[5.0, 5.1], [9.0, 9.1], [9.0, 9.2], []])
        ['b', 'a', 'a', '']
    """
    present = [number for number, scores in enumerate(groups) if scores]
    present.sort(key=lambda number: -statistics.fmean(groups[number]))
    alike = {
        frozenset(pair)
        for pair in combinations(present, 2)
        if not told_apart(groups[pair[0]], groups[pair[1]])
    }
    letters = [""] * len(groups)
    for letter, clique in zip(_LETTERS, _cliques(present, alike), strict=False):
        for number in clique:
            letters[number] += letter
    return letters


def beats(better: Sequence[float], worse: Sequence[float], sigmas: float = SIGMAS) -> bool:
    """Whether one set of scores lies above another by so many standard deviations.

    The deviation is that of the difference of two single runs. Of a single run it is not known.

    Example:
        >>> beats([9.0, 9.1], [5.0, 5.1]), beats([9.0, 9.1], [8.8, 8.9]), beats([9.0], [5.0])
        (True, False, False)
    """
    if min(len(better), len(worse)) < 2:
        return False
    sigma = math.hypot(statistics.stdev(better), statistics.stdev(worse))
    return statistics.fmean(better) - statistics.fmean(worse) > sigmas * sigma


def _cliques(ordered: Sequence[int], alike: set[frozenset[int]]) -> list[list[int]]:
    """The largest sets of which all pairs are alike, those with the first numbers first."""
    found: list[list[int]] = []

    def extend(chosen: list[int], open_ones: list[int], closed: list[int]) -> None:
        if not open_ones and not closed:
            found.append(chosen)
        for position, number in enumerate(open_ones):
            later, earlier = open_ones[position + 1 :], closed + open_ones[:position]
            extend(
                [*chosen, number],
                [other for other in later if frozenset((number, other)) in alike],
                [other for other in earlier if frozenset((number, other)) in alike],
            )

    extend([], list(ordered), [])
    return [clique for clique in found if clique]
