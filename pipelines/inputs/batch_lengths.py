"""How many positions a batch is computed with: not many more than its longest row has tokens."""

import dataclasses
from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

MAX_LENGTHS = 8
"""So many lengths at most: each new one is traced (and with XLA compiled) once."""


@dataclasses.dataclass(frozen=True)
class BatchLengths:
    """The lengths that batches are padded to.

    Padding takes no part in the attention, so every token's output stays what it was (but for
    rounding, and the draws of dropout); the time falls with the length, most of all for short
    sentences with a generous maximum.

    Attributes:
        allowed: the lengths, upwards; the last one is enough for every row.

    Example:
        >>> lengths = BatchLengths((16, 48))
        >>> lengths.of(np.array([5, 40])), lengths.of(np.array([3, 7]))
        (48, 16)
    """

    allowed: tuple[int, ...]

    @classmethod
    def fixed(cls, max_seq_length: int) -> Self:
        """One length: for TPUs, and where several steps are one compiled call."""
        return cls((max_seq_length,))

    @classmethod
    def fitted(cls, longest: NDArray[np.integer], enough: int) -> Self:
        """The at most eight lengths with which batches have the fewest positions.

        Args:
            longest: int [batches], the tokens of each batch's longest row.
            enough: the length of the longest row of all; the last of the lengths.

        Example:
            >>> BatchLengths.fitted(np.array([9, 9, 12, 30]), 30).allowed
            (9, 12, 30)
        """
        values, counts = np.unique(np.append(longest, enough), return_counts=True)
        values = np.maximum(values, 1)  # rows without a token still have a position
        if len(values) <= MAX_LENGTHS:
            return cls(tuple(np.unique(values).tolist()))
        return cls(tuple(values[list(_last_of_groups(values, counts))].tolist()))

    def of(self, lengths: NDArray[np.integer]) -> int:
        """The positions of a batch whose rows have so many tokens: int [rows]."""
        longest = int(lengths.max(initial=1))
        return next(length for length in self.allowed if length >= longest)


def _last_of_groups(values: NDArray[np.integer], counts: NDArray[np.integer]) -> Iterator[int]:
    """Cuts ascending values into groups, each padded to its last value, at the least cost.

    The least cost of the first n values in k groups follows from that in k - 1 (dynamic
    programming); 512 different lengths take some milliseconds.

    Returns:
        The index of each group's last value, upwards.
    """
    size = len(values)
    before = np.concatenate([[0], np.cumsum(counts)])
    # cost[first, last]: the positions of a group from `first` to `last`.
    cost = np.where(
        np.arange(size)[:, None] <= np.arange(size),
        (before[1:] - before[:-1, None]) * values.astype(np.float64),
        np.inf,
    )
    least, firsts = cost[0], []
    for _ in range(MAX_LENGTHS - 1):
        # ways[first, last]: the values before `first` in the groups so far, the rest in one more.
        ways = np.concatenate([[0.0], least[:-1]])[:, None] + cost
        firsts.append(ways.argmin(axis=0))
        least = ways.min(axis=0)
    lasts, last = [], size - 1
    for first in reversed(firsts):
        lasts.append(last)
        if first[last] == 0:
            break
        last = int(first[last]) - 1
    else:
        lasts.append(last)
    return reversed(lasts)
