"""Rows in batches of like length, each within a budget of tokens."""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_STEP = 8
_STEP_OF_LONG, _LONG = 32, 128
_FEW_TURNS = 8


def rounded_length(length: int) -> int:
    """The length that a row is padded to, so that few different shapes are computed.

    Up to 128 tokens a multiple of 8, above a multiple of 32.

    Example:
        >>> [rounded_length(length) for length in (3, 8, 9, 128, 129)]
        [8, 8, 16, 128, 160]
    """
    step = _STEP if length <= _LONG else _STEP_OF_LONG
    return -(-length // step) * step


def rounded_rows(count: int) -> int:
    """The rows that a batch which is not full is filled up to, so that few shapes are computed.

    Example:
        >>> [rounded_rows(count) for count in (1, 7, 9, 150)]
        [1, 7, 10, 160]
    """
    step = 1 << max(0, count.bit_length() - 3)  # four steps from a power of two to the next
    return -(-count // step) * step


def even_budget(lengths: NDArray[np.integer], budget: int, at_once: int) -> int:
    """The tokens of a batch with which a few texts keep all cores busy to the end.

    Three batches on two cores take as long as four. Where there are some batches for each core
    only, they become smaller, and their number about a multiple of the cores'. What fits into one
    batch stays one, which all cores compute together.

    Example:
        >>> even_budget(np.full(24, 128), 1024, 2), even_budget(np.full(240, 128), 1024, 2)
        (895, 1024)
        >>> [len(rows) for rows, _ in token_batches(np.full(24, 128), 895, 512)]
        [6, 6, 6, 6]
    """
    total = int(lengths.sum())
    turns = -(-total // (budget * at_once))
    if at_once == 1 or total <= budget or turns > _FEW_TURNS:
        return budget
    # A batch ends before the row that is too much: one more row, so that none is left at the end.
    return min(budget, -(-total // (turns * at_once)) + int(lengths.max()) - 1)


def token_batches(
    lengths: NDArray[np.integer],
    budget: int,
    longest: int = sys.maxsize,
    *,
    few_lengths: bool = True,
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Divides rows into batches; the longest come first, so that memory shows at once.

    `budget` is the most positions of a batch, padding included; a row alone may have more.
    Without `few_lengths` every batch is as long as its longest row.

    Gives the rows' numbers, int64 [batch], and the length that they are padded to.

    Example:
        >>> [(rows.tolist(), length) for rows, length in
        ...  token_batches(np.array([3, 20, 5, 18]), 32, 512)]
        [([1], 24), ([3], 24), ([2, 0], 8)]
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        own = int(lengths[order[start]])
        length = min(rounded_length(own), longest) if few_lengths else own
        end = start + max(1, budget // max(1, length))
        yield order[start:end], length
        start = end
