"""Batches of a task's rows: from shards, in an order that is arithmetic, with little padding."""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from pipelines.inputs.order import RecordOrder, shuffled
from pipelines.pretraining_data.draws import mix, seed_word
from pipelines.records.row_set import RowSet

Batch = Mapping[str, np.ndarray]
Numbers = NDArray[np.int64]

WINDOW_BATCHES = 50
"""Rows are sorted by their lengths inside windows of so many batches."""

_SHAPES = 8  # so many lengths at most: each new one is traced (and with XLA compiled) once


@dataclasses.dataclass(frozen=True)
class BatchLengths:
    """The lengths that batches are padded to.

    Attributes:
        max_seq_length: the most positions of a row.
        fixed: pad all batches to `max_seq_length`: for TPUs, and where several steps are one
            compiled call. Otherwise a batch has one of at most eight lengths.

    Example:
        >>> lengths = np.array([5, 40])
        >>> BatchLengths(128).of(lengths), BatchLengths(128, fixed=True).of(lengths)
        (48, 128)
    """

    max_seq_length: int
    fixed: bool = False

    def of(self, lengths: NDArray) -> int:
        """The positions of a batch whose rows have so many tokens: int [rows]."""
        if self.fixed:
            return self.max_seq_length
        return padded_length(int(lengths.max(initial=1)), self.max_seq_length)


def padded_length(longest: int, max_seq_length: int) -> int:
    """Rounds the tokens of a batch's longest row up to one of at most eight lengths.

    Padding takes no part in the attention, so every token's output stays what it was (but for
    rounding, and the draws of dropout); the time falls with the length, most of all for short
    sentences with a generous maximum. Lengths are multiples of an eighth of the maximum (of 8
    positions at least), so that there are few shapes.

    Args:
        longest: the tokens of the batch's longest row.
        max_seq_length: the most positions of a row.

    Example:
        >>> [padded_length(longest, 128) for longest in (0, 1, 16, 17, 127, 128)]
        [16, 16, 16, 32, 128, 128]
    """
    grain = max(8, -(-max_seq_length // _SHAPES))
    return min(max_seq_length, -(-max(longest, 1) // grain) * grain)


class LengthOrder:
    """Which rows are in the batch of a step, where a batch holds rows of like lengths.

    The endless row of epochs (see `RecordOrder`) is cut into windows of about 50 batches; the rows
    of a window are sorted by length and cut into batches, and the batches are shuffled. So every
    epoch still has each row once, and a step's batch is a pure function of (seed, step).

    Args:
        lengths: int [rows], the tokens of each row.
        batch_size: rows of a batch.
        seed: fixes the order.

    Example:
        >>> order = LengthOrder(np.array([9, 2, 9, 2]), batch_size=2, seed=1)
        >>> sorted(sorted(order.rows_of(step).tolist()) for step in (0, 1))
        [[0, 2], [1, 3]]
    """

    def __init__(self, lengths: NDArray, batch_size: int, seed: int) -> None:
        self._lengths, self._batch_size = lengths, batch_size
        self._order = RecordOrder(len(lengths), seed)
        self._key = seed_word(seed)
        # Not more than an epoch: a batch would often hold the same row twice.
        self._batches = min(WINDOW_BATCHES, max(1, len(lengths) // batch_size))
        self._window: tuple[int, Numbers] = (-1, np.zeros([0, 0], np.int64))

    def rows_of(self, step: int) -> Numbers:
        """The rows of a step's batch: int64 [batch_size]."""
        window, batch = divmod(step, self._batches)
        number, batches = self._window
        if number != window:
            batches = self._sorted(window)
            self._window = (window, batches)  # the steps that follow are mostly of this window
        return batches[batch]

    def _sorted(self, window: int) -> Numbers:
        """The batches of a window in their order: int64 [batches, batch_size]."""
        size = self._batches * self._batch_size
        epochs, rows = self._order.at(window * size + np.arange(size))
        # Upwards in one epoch and downwards in the next: the batch where they meet is of long rows.
        rising = np.where(epochs % 2 == 0, 1, -1) * self._lengths[rows].astype(np.int64)
        by_length = np.lexsort([rising, epochs])
        batches = rows[by_length].reshape(self._batches, self._batch_size)
        key = mix(np.array([window], np.uint64) + mix(np.array([1], np.uint64) + self._key))[0]
        return batches[shuffled(np.arange(self._batches), self._batches, key)]


class RowBatches:
    """Endless training batches; the batch at a step is a pure function of (seed, step).

    Args:
        rows: what to train on.
        batch_size: rows of the global batch.
        seed: fixes the order.
        lengths: what batches are padded to.
        by_length: put rows of like lengths into a batch.

    Example:
        See `tests/pipelines/inputs/test_row_batches.py`: rows stand in files.
    """

    def __init__(
        self,
        rows: RowSet,
        batch_size: int,
        seed: int,
        lengths: BatchLengths,
        *,
        by_length: bool = False,
    ) -> None:
        self._rows, self._lengths = rows, lengths
        self._order = RecordOrder(len(rows), seed)
        self._by_length = LengthOrder(rows.lengths, batch_size, seed) if by_length else None
        self.batch_size = batch_size
        self.num_workers = 1  # every worker gets whole batches

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; each array is [batch_size, ...]."""
        while True:
            yield self.batch_at(step)
            step += 1

    def batch_at(self, step: int) -> Batch:
        """The batch of one step."""
        numbers = self.rows_of(step)
        return self._rows.read(numbers).padded(self._lengths.of(self._rows.lengths[numbers]))

    def where(self, step: int) -> str:
        """Names the examples of a step's batch, counted from 0."""
        examples = np.unique(self._rows.examples[self.rows_of(step)])
        return f"examples {', '.join(map(str, examples.tolist()))} of the training split"

    def rows_of(self, step: int) -> Numbers:
        """The numbers of the rows of a step's batch: int64 [batch_size]."""
        if self._by_length:
            return self._by_length.rows_of(step)
        positions = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        return self._order.at(positions)[1]

    def padding_share(self, most_steps: int = 1000) -> float:
        """The share of positions without a token, over an epoch or its first so many steps."""
        steps = min(-(-len(self._rows) // self.batch_size), most_steps)
        tokens = positions = 0
        for step in range(steps):
            lengths = self._rows.lengths[self.rows_of(step)]
            tokens += int(lengths.sum())
            positions += self._lengths.of(lengths) * self.batch_size
        return 1 - tokens / positions


class RowEvaluation:
    """One pass over all rows, those of like lengths together.

    The last batch is padded with copies of row 0, of weight 0 in `example_weights` [batch].

    Args:
        rows: what to measure or to answer.
        batch_size: rows of every batch.
        lengths: what batches are padded to.
    """

    def __init__(self, rows: RowSet, batch_size: int, lengths: BatchLengths) -> None:
        self._rows, self._lengths = rows, lengths
        self.batch_size = batch_size
        self.num_batches = -(-len(rows) // batch_size)

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        for numbers in self.numbers():
            padded = np.zeros(self.batch_size, np.int64)
            padded[: len(numbers)] = numbers
            weights = np.arange(self.batch_size) < len(numbers)
            length = self._lengths.of(self._rows.lengths[padded])
            batch = self._rows.read(padded).padded(length)
            yield {**batch, EXAMPLE_WEIGHTS: weights.astype(np.float32)}

    def numbers(self) -> Iterator[Numbers]:
        """Gives the numbers of the real rows of each batch: int64 [batch_size] or fewer."""
        size = self.batch_size * WINDOW_BATCHES
        for start in range(0, len(self._rows), size):
            numbers = np.arange(start, min(start + size, len(self._rows)))
            order = numbers[np.argsort(self._rows.lengths[numbers], kind="stable")]
            for first in range(0, len(order), self.batch_size):
                yield order[first : first + self.batch_size]

    def padding_share(self) -> float:
        """The share of positions without a token that counts."""
        tokens = int(self._rows.lengths.sum(dtype=np.int64))
        lengths = [self._lengths.of(self._rows.lengths[numbers]) for numbers in self.numbers()]
        return 1 - tokens / (sum(lengths) * self.batch_size)
