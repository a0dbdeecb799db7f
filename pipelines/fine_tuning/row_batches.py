"""Batches of a task's rows, in an order that is arithmetic, with little padding.

Batches are padded to one of a few lengths, chosen so that an epoch has the least padding.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from pipelines.fine_tuning.row_set import RowSet
from pipelines.inputs.pretraining import RecordOrder, shuffled
from pipelines.pretraining_data.draws import mix, seed_word
from pipelines.records.rows import Numbers

MAX_LENGTHS = 8
"""So many lengths at most: each new one is traced (and with XLA compiled) once."""


@dataclasses.dataclass(frozen=True)
class BatchLengths:
    """The lengths, upwards, that batches are padded to; the last one is enough for every row.

    Padding takes no part in the attention, so every token's output stays what it was (but for
    rounding, and the draws of dropout); the time falls with the length, most of all for short
    sentences with a generous maximum.
    """

    allowed: tuple[int, ...]

    @classmethod
    def fixed(cls, max_seq_length: int) -> Self:
        """One length: for TPUs, and where several steps are one compiled call."""
        return cls((max_seq_length,))

    @classmethod
    def fitted(cls, longest: NDArray[np.integer], enough: int) -> Self:
        """The at most eight lengths with which batches have the fewest positions.

        `longest` is that of each batch, int [batches]; `enough` is the last of the lengths.

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
    programming). Gives the index of each group's last value, upwards.
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


Batch = Mapping[str, np.ndarray]

WINDOW_BATCHES = 50
"""Rows are sorted by their lengths inside windows of so many batches at most."""

LEAST_WINDOWS = 4
"""An epoch has so many windows at least, as in Hugging Face's sampler: of a small set all long rows
would otherwise be in one batch, in every epoch."""

_COUNTED_STEPS = 1000


class LengthOrder:
    """Which rows are in the batch of a step, where a batch holds rows of like lengths.

    The endless row of epochs (see `RecordOrder`) is cut into windows of up to 50 batches, a quarter
    of an epoch at most. One of them ends where an epoch does (or, where a batch holds rows of two
    epochs, before that batch). The rows of a window are sorted by length and cut into batches, and
    the batches are shuffled. So every epoch still has each row once, the last one as well, and a
    step's batch is a pure function of (seed, step).
    """

    def __init__(self, lengths: NDArray, batch_size: int, seed: int) -> None:
        self._lengths, self._batch_size = lengths, batch_size
        self._order = RecordOrder(len(lengths), seed)
        self._key = seed_word(seed)
        windows = max(LEAST_WINDOWS, -(-len(lengths) // (WINDOW_BATCHES * batch_size)))
        self._windows_rows = windows * batch_size  # one batch of each window of an epoch
        self._window: tuple[int, Numbers] = (-1, np.zeros([0, 0], np.int64))

    def rows_of(self, step: int) -> Numbers:
        """The rows of a step's batch: int64 [batch_size]."""
        window = ((step + 1) * self._windows_rows - 1) // len(self._lengths)
        number, batches = self._window
        if number != window:
            batches = self._sorted(window)
            self._window = (window, batches)  # the steps that follow are mostly of this window
        return batches[step - self._first_step(window)]

    def _first_step(self, window: int) -> int:
        return window * len(self._lengths) // self._windows_rows

    def _sorted(self, window: int) -> Numbers:
        """The batches of a window in their order: int64 [batches, batch_size]."""
        first, end = self._first_step(window), self._first_step(window + 1)
        places = np.arange(first * self._batch_size, end * self._batch_size)
        epochs, rows = self._order.at(places)
        # Upwards in one epoch and downwards in the next: the batch where they meet is of long rows.
        rising = np.where(epochs % 2 == 0, 1, -1) * self._lengths[rows].astype(np.int64)
        by_length = np.lexsort([rising, epochs])
        batches = self.arranged(rows[by_length])
        key = mix(np.array([window], np.uint64) + mix(np.array([1], np.uint64) + self._key))[0]
        return batches[shuffled(np.arange(end - first), end - first, key)]

    def arranged(self, rows: Numbers) -> Numbers:
        """Divides a window's rows, sorted by length, into batches: int64 [batches, batch_size]."""
        return rows.reshape(-1, self._batch_size)


class RowBatches:
    """Endless training batches; the batch at a step is a pure function of (seed, step).

    All batches are padded to `fixed_length`, or each to one of at most eight lengths.
    """

    def __init__(
        self,
        rows: RowSet,
        batch_size: int,
        seed: int,
        *,
        fixed_length: int | None = None,
    ) -> None:
        self._rows = rows
        self._order = LengthOrder(rows.lengths, batch_size, seed)
        self.batch_size = batch_size
        self._lengths = _batch_lengths(rows, self._some_numbers(), fixed_length)
        self.num_workers = 1  # every worker gets whole batches

    def batches_from(self, step: int) -> Iterator[Batch]:
        while True:
            yield self.batch_at(step)
            step += 1

    def batch_at(self, step: int) -> Batch:
        numbers = self.rows_of(step)
        return self._rows.read(numbers).padded(self._lengths.of(self._rows.lengths[numbers]))

    def where(self, step: int) -> str:
        """Names the examples of a step's batch, counted from 0."""
        examples = np.unique(self._rows.examples[self.rows_of(step)])
        return f"examples {', '.join(map(str, examples.tolist()))} of the training split"

    def rows_of(self, step: int) -> Numbers:
        return self._order.rows_of(step)

    def _some_numbers(self) -> Iterator[Numbers]:
        """The rows of the batches that are counted: an epoch's, or those of its beginning."""
        for step in range(min(-(-len(self._rows) // self.batch_size), _COUNTED_STEPS)):
            yield self.rows_of(step)


class RowEvaluation:
    """One pass over all rows, those of like lengths together; padded as in `RowBatches`.

    The last batch is filled up with copies of its first row, of weight 0 in `example_weights`.
    """

    def __init__(self, rows: RowSet, batch_size: int, fixed_length: int | None = None) -> None:
        self._rows = rows
        self.batch_size = batch_size
        self._lengths = _batch_lengths(rows, self.numbers(), fixed_length)
        self.num_rows = len(rows)
        self.num_batches = -(-len(rows) // batch_size)

    def batches(self) -> Iterator[Batch]:
        yield from map(self.batch_of, self.numbers())

    def batch_of(self, numbers: Numbers) -> Batch:
        """The batch of some rows: those of one batch of `numbers`."""
        padded = np.full(self.batch_size, numbers[0])
        padded[: len(numbers)] = numbers
        weights = np.arange(self.batch_size) < len(numbers)
        length = self._lengths.of(self._rows.lengths[padded])
        batch = self._rows.read(padded).padded(length)
        return {**batch, EXAMPLE_WEIGHTS: weights.astype(np.float32)}

    def numbers(self) -> Iterator[Numbers]:
        """Gives the numbers of the real rows of each batch: int64 [batch_size] or fewer."""
        size = self.batch_size * WINDOW_BATCHES
        for start in range(0, len(self._rows), size):
            numbers = np.arange(start, min(start + size, len(self._rows)))
            order = numbers[np.argsort(self._rows.lengths[numbers], kind="stable")]
            for first in range(0, len(order), self.batch_size):
                yield order[first : first + self.batch_size]


def _batch_lengths(
    rows: RowSet, batches: Iterable[Numbers], fixed_length: int | None
) -> BatchLengths:
    if fixed_length is not None:
        return BatchLengths.fixed(fixed_length)
    longest = [int(rows.lengths[numbers].max(initial=1)) for numbers in batches]
    return BatchLengths.fitted(np.array(longest, np.int64), int(rows.lengths.max(initial=1)))
