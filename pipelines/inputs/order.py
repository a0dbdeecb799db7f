"""The order of training data as arithmetic, without a shuffle buffer.

Which record comes at a position of the endless sequence of epochs is a pure function of the seed
and the position. So a checkpoint needs to hold only the step, and a resumed run reads exactly the
records that an uninterrupted one would have read, even with another number of workers.
"""

import math

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.draws import below, mix, seed_word

Numbers = NDArray[np.int64]
_ROUNDS = 6


def shuffled(positions: Numbers, size: int, key: np.uint64) -> Numbers:
    """A pseudo-random permutation of 0 .. size - 1, evaluated at some positions.

    Nothing of the size of the set is kept: a Feistel network over pairs (left, right) with
    `width * height >= size`.

    Args:
        positions: int64 [n], each in [0, size).

    Returns:
        int64 [n].

    Example:
        >>> sorted(shuffled(np.arange(10), 10, np.uint64(7)).tolist()) == list(range(10))
        True
    """
    width = math.isqrt(size - 1) + 1
    height = -(-size // width)
    result = _network(positions, width, height, key)
    # A result outside the set is permuted again until it lies inside ("cycle walking"), which keeps
    # the whole a permutation; width * height exceeds the size only a little, so that is rare.
    while (outside := np.flatnonzero(result >= size)).size:
        result[outside] = _network(result[outside], width, height, key)
    return result


def _network(numbers: Numbers, width: int, height: int, key: np.uint64) -> Numbers:
    left, right = numbers // width, numbers % width
    for step in range(_ROUNDS):
        salt = mix(np.array([step + 1], np.uint64) + key)
        if step % 2 == 0:
            left = (left + below(mix(mix(right.astype(np.uint64) + salt)), height)) % height
        else:
            right = (right + below(mix(mix(left.astype(np.uint64) + salt)), width)) % width
    return left * width + right


class RecordOrder:
    """Which record comes at each position of an endless sequence of epochs.

    Example:
        >>> order = RecordOrder(4, seed=1, shuffle=False)
        >>> epoch, record = order.at(np.array([2, 3, 4, 9]))
        >>> epoch.tolist(), record.tolist()
        ([0, 0, 1, 2], [2, 3, 0, 1])
    """

    def __init__(self, records: int, seed: int, shuffle: bool = True) -> None:
        self._records, self._shuffle = records, shuffle
        self._key = seed_word(seed)

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """The epoch and the record at each position: two int64 [n]."""
        epochs, inside = np.divmod(positions, self._records)
        if not self._shuffle:
            return epochs, inside
        records = np.empty_like(inside)
        for epoch in np.unique(epochs).tolist():
            chosen = epochs == epoch
            key = mix(np.array([epoch], np.uint64) + self._key)[0]
            records[chosen] = shuffled(inside[chosen], self._records, key)
        return epochs, records
