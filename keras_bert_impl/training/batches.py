"""The contracts of data sources, sources of arrays in memory, and reading ahead in a thread."""

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from keras_bert_impl.errors import UserError

Batch = Mapping[str, np.ndarray]

EXAMPLE_WEIGHTS = "example_weights"
"""The feature that marks real examples: float32 [batch], 1 for a real row and 0 for padding."""


class BatchSource(Protocol):
    """Endless training batches; the batch at a step is a pure function of the step.

    So a checkpoint needs to remember the step only, and a run that was killed continues with the
    very batch that would have come next.

    Attributes:
        batch_size: rows of the whole batch of a step, over all workers.
        num_workers: 1 where every worker reads whole batches; otherwise how many workers share a
            batch, of which this source gives one worker's rows only.
    """

    batch_size: int
    num_workers: int

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; each array is [rows, ...]."""
        ...

    def where(self, step: int) -> str:
        """Names the examples of a step's batch, for a person."""
        ...


class EvaluationSource(Protocol):
    """One pass over a finite set; every batch has the same number of rows.

    The last batch is padded; `example_weights` [batch] tells real rows (1) from padding (0).
    """

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        ...


def _count_rows(features: Batch) -> int:
    """The common number of rows of all arrays."""
    if not features:
        raise UserError("A set without features cannot be batched; give at least one array.")
    lengths = {name: len(array) for name, array in features.items()}
    (first, rows), *others = lengths.items()
    for name, length in others:
        if length != rows:
            raise UserError(
                f"Feature '{name}' has {length} rows but '{first}' has {rows}; give all of them "
                "the same number of rows."
            )
    if rows == 0:
        raise UserError("A set of 0 examples cannot be batched; check the input files.")
    return rows


class ArrayBatches:
    """Endless batches from arrays in memory, in an order that is arithmetic.

    The examples form one endless sequence, epoch after epoch, each epoch in an order of its own
    that follows from (seed, epoch) alone. Step `s` takes the `batch_size` examples from position
    `s * batch_size` on; a batch may reach into the next epoch, so no example is left out.

    Args:
        features: arrays with a common first dimension.
        batch_size: rows of a batch.
        seed: fixes the order.
        shuffle: False keeps the order of the arrays in every epoch.
        finish: what is done to each batch at last, e.g. `trim_padding`; a pure function.

    Raises:
        UserError: no rows, or arrays of different lengths.

    Example:
        >>> batches = ArrayBatches({"x": np.arange(3)}, batch_size=2, seed=1, shuffle=False)
        >>> stream = batches.batches_from(1)
        >>> next(stream)["x"].tolist(), next(stream)["x"].tolist()
        ([2, 0], [1, 2])
    """

    def __init__(
        self,
        features: Batch,
        batch_size: int,
        seed: int,
        shuffle: bool = True,
        finish: Callable[[Batch], Batch] = dict,
    ) -> None:
        self._rows = _count_rows(features)
        self._features = dict(features)
        self._seed, self._shuffle, self._finish = seed, shuffle, finish
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))
        self.batch_size, self.num_workers = batch_size, 1

    @property
    def num_examples(self) -> int:
        """How many examples an epoch has."""
        return self._rows

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; each array is [batch_size, ...]."""
        while True:
            rows = self._rows_of(step)
            yield self._finish({name: array[rows] for name, array in self._features.items()})
            step += 1

    def where(self, step: int) -> str:
        """Names the rows of a step's batch, counted from 0.

        Example:
            >>> ArrayBatches({"x": np.arange(3)}, batch_size=2, seed=1, shuffle=False).where(1)
            'examples 0, 2 of the set'
        """
        return f"examples {', '.join(map(str, sorted(self._rows_of(step).tolist())))} of the set"

    def _rows_of(self, step: int) -> np.ndarray:
        positions = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        epochs, inside = np.divmod(positions, self._rows)
        rows = np.empty_like(positions)
        for epoch in np.unique(epochs):
            chosen = epochs == epoch
            rows[chosen] = self._epoch_order(int(epoch))[inside[chosen]]
        return rows

    def _epoch_order(self, epoch: int) -> np.ndarray:
        if not self._shuffle:
            return np.arange(self._rows)
        if self._order[0] != epoch:
            # Philox is counter-based: any epoch's order is made at once, without the ones before.
            draws = np.random.Generator(np.random.Philox(key=[self._seed, epoch]))
            self._order = (epoch, draws.permutation(self._rows))
        return self._order[1]


class ArrayEvaluation:
    """One pass over arrays in memory, in their order; the last batch is padded with row 0.

    Args:
        features: arrays with a common first dimension.
        batch_size: rows of every batch.
        finish: what is done to each batch at last, e.g. `trim_padding`; a pure function.

    Raises:
        UserError: no rows, or arrays of different lengths.

    Example:
        >>> source = ArrayEvaluation({"x": np.arange(3)}, batch_size=2)
        >>> [(b["x"].tolist(), b["example_weights"].tolist()) for b in source.batches()]
        [([0, 1], [1.0, 1.0]), ([2, 0], [1.0, 0.0])]
    """

    def __init__(
        self, features: Batch, batch_size: int, finish: Callable[[Batch], Batch] = dict
    ) -> None:
        self._rows = _count_rows(features)
        self._features, self._finish = dict(features), finish
        self.batch_size = batch_size
        self.num_batches = -(-self._rows // batch_size)

    @property
    def num_examples(self) -> int:
        """How many real examples the pass has."""
        return self._rows

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        for first in range(0, self._rows, self.batch_size):
            positions = np.arange(first, first + self.batch_size)
            real = positions < self._rows
            rows = np.where(real, positions, 0)
            batch = {name: array[rows] for name, array in self._features.items()}
            yield self._finish({**batch, EXAMPLE_WEIGHTS: real.astype(np.float32)})


_END = object()


@contextlib.contextmanager
def prefetched(items: Iterable[Any], ahead: int = 2) -> Iterator[Iterator[Any]]:
    """Runs an iterator in a thread that keeps up to `ahead` items ready for the caller.

    An error in the iterator is raised where its item is read; leaving the block ends the thread.

    Args:
        items: the iterator; only the thread touches it.
        ahead: how many items may wait.

    Example:
        >>> with prefetched(range(3)) as numbers:
        ...     list(numbers)
        [0, 1, 2]
    """
    source = iter(items)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:
        waiting: collections.deque[Future] = collections.deque(
            thread.submit(next, source, _END) for _ in range(ahead)
        )

        def read() -> Iterator[Any]:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, source, _END))
                yield item

        try:
            yield read()
        finally:
            thread.shutdown(cancel_futures=True)
