"""The contracts of data sources, and reading ahead in a thread."""

import collections
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

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
