"""Batches of a task's rows, in an order that is arithmetic, with little padding.

Batches are padded to one of a few lengths: as few as make up for the time that each takes to trace.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.config import BertConfig
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, BatchSource, EvaluationSource
from pipelines.fine_tuning.row_set import RowSet
from pipelines.inputs.pretraining import RecordOrder, shuffled
from pipelines.pretraining_data.draws import mix, seed_word
from pipelines.records.rows import Numbers

MAX_LENGTHS = 8  # each new one is traced (and with XLA compiled) once
# Multiplications of a layer's products forward that take as long as tracing and compiling it: .6 s
# of a processor with 105 GFLOP/s. It is a constant so that a run has the same lengths everywhere.
_TRACED = 65e9 / 6


@dataclasses.dataclass(frozen=True)
class BatchLengths:
    """The lengths, upwards, that batches are padded to; the last one is enough for every row.

    Padding takes no part in the attention, so every token's output stays what it was (but for
    rounding, and the draws of dropout).
    """

    allowed: tuple[int, ...]

    @classmethod
    def fitted(cls, longest: NDArray[np.integer], enough: int, cost: float = 0.0) -> Self:
        """The at most eight lengths that take the least time; `enough` is the last of them.

        `longest` is the longest row of each batch, int [batches]. In the time of `cost` positions
        of rows a length is traced: so many it must save.

        Example:
            >>> BatchLengths.fitted(np.array([9, 9, 12, 30]), 30).allowed
            (9, 12, 30)
            >>> BatchLengths.fitted(np.array([9, 9, 12, 30]), 30, cost=10).allowed
            (12, 30)
        """
        values, counts = np.unique(
            np.maximum(np.append(longest, enough), 1),  # rows without a token have a position, too
            return_counts=True,
        )
        return cls(tuple(values[_last_of_groups(values, counts, cost)].tolist()))

    def open_features(self, rows: RowSet) -> frozenset[str]:
        tokens = rows.read(np.arange(0)).tokens if len(self.allowed) > 1 else {}
        return frozenset(name for name, flat in tokens.items() if flat.ndim == 1)

    def of(self, lengths: NDArray[np.integer]) -> int:
        """The positions of a batch whose rows have so many tokens: int [rows]."""
        longest = int(lengths.max(initial=1))
        return next(length for length in self.allowed if length >= longest)


@dataclasses.dataclass(frozen=True)
class LengthRule:
    """What lengths the batches of a run may have."""

    fixed: int | None = None  # that of all batches, if they may not differ
    cost: float = 0.0  # positions that are computed while one more length is traced
    steps: int | None = None  # how many batches the run has, if not those of one pass

    @classmethod
    def of_model(cls, config: BertConfig, steps: int | None = None) -> Self:
        """The rule of a model, of any depth: tracing and computing both grow with its layers.

        Example:
            >>> round(LengthRule.of_model(BertConfig(vocab_size=100)).cost)  # of base
            1531
        """
        size, inner = config.hidden_size, config.intermediate_size
        return cls(cost=_TRACED / (4 * size * size + 2 * size * inner), steps=steps)

    def lengths(
        self, longest: Callable[[], NDArray[np.integer]], enough: int, size: int, parts: int = 1
    ) -> BatchLengths:
        """The lengths of batches of `size` rows; `enough` is the longest row of all.

        `longest` finds that of some batches or their parts: int [batches * parts].
        """
        if self.fixed is not None:
            return BatchLengths((self.fixed,))
        found = longest()
        rows = (self.steps or len(found) / parts) * size
        return BatchLengths.fitted(found, enough, self.cost * len(found) / max(rows, 1))


def _last_of_groups(
    values: NDArray[np.integer], counts: NDArray[np.integer], cost_of_group: float
) -> list[int]:
    """Cuts ascending values into groups, each padded to its last value, at the least cost.

    The least cost of the first n values in k groups follows from that in k - 1 (dynamic
    programming). Gives the index of each group's last value, upwards.
    """
    size = len(values)
    before = np.concatenate([[0], np.cumsum(counts)])
    # cost[first, last]: of a group from `first` to `last`.
    cost = np.where(
        np.arange(size)[:, None] <= np.arange(size),
        (before[1:] - before[:-1, None]) * values.astype(np.float64) + cost_of_group,
        np.inf,
    )
    least, firsts = [cost[0]], [np.zeros(size, np.int64)]
    for _ in range(min(MAX_LENGTHS, size) - 1):
        # ways[first, last]: the values before `first` in the groups so far, the rest in one more.
        ways = np.concatenate([[np.inf], least[-1][:-1]])[:, None] + cost
        firsts.append(ways.argmin(axis=0))
        least.append(ways.min(axis=0))
    lasts, last = list[int](), size - 1
    for first in reversed(firsts[: 1 + int(np.argmin([one[-1] for one in least]))]):
        lasts.append(last)
        last = int(first[last]) - 1
    return lasts[::-1]


Batch = Mapping[str, np.ndarray]

WINDOW_BATCHES = 50  # rows are sorted by their lengths inside windows of so many at most
# An epoch has so many windows at least, as in Hugging Face's sampler: of a small set all long rows
# would otherwise be in one batch, in every epoch.
LEAST_WINDOWS = 4
_COUNTED_STEPS = 1000
_PASSES = 4  # so often a split is scored in a run, about; one number, so that its figures are one


def counted_steps(rows: int, batch_size: int) -> range:
    """The steps whose lengths say what lengths pay: an epoch's, or its first ones."""
    return range(min(-(-rows // batch_size), _COUNTED_STEPS))


class LengthOrder:
    """Which rows are in the batch of a step, where a batch holds rows of like lengths.

    The endless row of epochs (see `RecordOrder`) is cut into windows of up to 50 batches, a quarter
    of an epoch at most. One of them ends where an epoch does (or, where a batch holds rows of two
    epochs, before that batch). The rows of a window are sorted by length and cut into batches, and
    the batches are shuffled. So every epoch still has each row once.
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


class RowBatches(BatchSource):
    """Endless training batches, each padded to one of the lengths of the rule.

    Weights of rows, with which windows share their text's, are scaled to 1 in the mean of all rows.
    """

    def __init__(
        self, rows: RowSet, batch_size: int, seed: int, rule: LengthRule | None = None
    ) -> None:
        self._rows, self.batch_size = rows, batch_size
        self.rows_of = LengthOrder(rows.lengths, batch_size, seed).rows_of
        steps = counted_steps(len(rows), batch_size)
        # Those of one order: runs of other seeds have the same lengths, and compile nothing more.
        counted = map(LengthOrder(rows.lengths, batch_size, seed=0).rows_of, steps)
        self._lengths = _lengths(rows, counted, rule, batch_size)
        self.open_features = self._lengths.open_features(rows)

    def batch_at(self, step: int) -> Batch:
        numbers = self.rows_of(step)
        batch = self._rows.read(numbers).padded(self._lengths.of(self._rows.lengths[numbers]))
        if EXAMPLE_WEIGHTS not in batch:
            return batch
        of_row = np.float32(len(self._rows) / self._rows.num_examples)
        return {**batch, EXAMPLE_WEIGHTS: batch[EXAMPLE_WEIGHTS] * of_row}

    def where(self, step: int) -> str:
        examples = np.unique(self._rows.examples[self.rows_of(step)])
        return f"examples {', '.join(map(str, examples.tolist()))} of the training split"


class RowEvaluation(EvaluationSource):
    """One pass over all rows, those of like lengths together; padded as the rule says.

    The last batch is filled up with copies of its first row, of weight 0 in `example_weights`.
    """

    def __init__(self, rows: RowSet, batch_size: int, rule: LengthRule | None = None) -> None:
        self._rows, self.batch_size = rows, batch_size
        self._lengths = _lengths(rows, self.numbers(), rule, _PASSES * batch_size)
        self.open_features = self._lengths.open_features(rows)

    def batches(self) -> Iterator[Batch]:
        for numbers in self.numbers():
            padded = np.full(self.batch_size, numbers[0])
            padded[: len(numbers)] = numbers
            weights = np.arange(self.batch_size) < len(numbers)
            batch = self._rows.read(padded).padded(self._lengths.of(self._rows.lengths[padded]))
            yield {**batch, EXAMPLE_WEIGHTS: weights.astype(np.float32)}

    def numbers(self) -> Iterator[Numbers]:
        """Gives the numbers of the real rows of each batch: int64 [batch_size] or fewer."""
        size = self.batch_size * WINDOW_BATCHES
        for start in range(0, len(self._rows), size):
            numbers = np.arange(start, min(start + size, len(self._rows)))
            order = numbers[np.argsort(self._rows.lengths[numbers], kind="stable")]
            for first in range(0, len(order), self.batch_size):
                yield order[first : first + self.batch_size]


def _lengths(
    rows: RowSet, batches: Iterable[Numbers], rule: LengthRule | None, size: int
) -> BatchLengths:
    """The lengths of some batches, which are looked at only if the rule asks for it."""

    def longest() -> NDArray[np.int64]:
        return np.array([rows.lengths[numbers].max(initial=1) for numbers in batches], np.int64)

    return (rule or LengthRule()).lengths(longest, int(rows.lengths.max(initial=1)), size)
