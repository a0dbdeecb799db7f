"""Longest-first truncation of a pair, in closed form.

The reference drops one token at a time from the longer side (from B where both are equally long),
from its front or its back with probability one half. How many tokens each side loses follows from
the two lengths alone; how many of them go from the front is binomial: the number of ones among as
many random bits.
"""

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import Purpose, Words, draw

Lengths = NDArray[np.int64]
_WORDS_AT_ONCE = 16


def truncated_lengths(len_a: Lengths, len_b: Lengths, room: int) -> tuple[Lengths, Lengths]:
    """The lengths of both sides after longest-first truncation.

    Args:
        len_a: int64 [pairs], tokens of A.
        len_b: int64 [pairs], tokens of B.
        room: tokens that A and B may have together.

    Returns:
        Two int64 [pairs] whose sum is at most `room`.

    Example:
        >>> a, b = truncated_lengths(np.array([3, 9, 9, 5]), np.array([4, 2, 8, 6]), 10)
        >>> a.tolist(), b.tolist()
        ([3, 8, 5, 5], [4, 2, 5, 5])
    """
    excess = np.maximum(len_a + len_b - room, 0)
    surplus_of_a = np.clip(len_a - len_b, 0, excess)
    surplus_of_b = np.clip(len_b - len_a, 0, excess)
    shared = excess - surplus_of_a - surplus_of_b
    return len_a - surplus_of_a - shared // 2, len_b - surplus_of_b - (shared + 1) // 2


def dropped_from_front(lost: Lengths, keys: Words, purpose: Purpose) -> Lengths:
    """How many of the lost tokens go from the front: Binomial(lost, 1/2).

    Args:
        lost: int64 [pairs], tokens that a side loses.
        keys: uint64 [pairs], the examples' keys.
        purpose: TRUNCATE_A or TRUNCATE_B.

    Returns:
        int64 [pairs], between 0 and `lost`.

    Example:
        >>> keys = np.arange(4, dtype=np.uint64)
        >>> front = dropped_from_front(np.array([0, 1, 64, 10_000]), keys, Purpose.TRUNCATE_A)
        >>> front[0].item(), bool(abs(front[3] - 5000) < 300)
        (0, True)
    """
    front = np.zeros(lost.shape, np.int64)
    waiting = np.flatnonzero(lost > 0)
    word = 0
    while len(waiting) and word < _WORDS_AT_ONCE:
        bits = draw(keys[waiting], purpose, word)
        left = lost[waiting] - 64 * word
        spare = np.clip(64 - left, 0, 63).astype(np.uint64)
        front[waiting] += np.bitwise_count(bits >> spare).astype(np.int64)
        waiting = waiting[left > 64]
        word += 1
    for row in waiting.tolist():  # sentences of thousands of tokens: rare
        front[row] += _ones_in_stream(int(lost[row]), keys[row], purpose, word)
    return front


def _ones_in_stream(lost: int, key: np.uint64, purpose: Purpose, first_word: int) -> int:
    """Ones among the bits `64 * first_word .. lost` of one example's stream."""
    words = -(-lost // 64)
    ones = 0
    for start in range(first_word, words, 1 << 16):
        index = np.arange(start, min(words, start + (1 << 16)), dtype=np.uint64)
        bits = draw(np.full(len(index), key), purpose, index)
        if start + len(index) == words:
            bits[-1] >>= np.uint64(64 * words - lost)
        ones += int(np.bitwise_count(bits).sum())
    return ones
