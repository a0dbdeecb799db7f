"""The contracts of data sources, a run's phases, reading ahead, and batches split into parts."""

import collections
import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from keras_bert_impl.tokenization.packing import EXAMPLE_WEIGHTS
from keras_bert_impl.training.config import TrainingConfig

Batch = Mapping[str, np.ndarray]


class BatchSource(Protocol):
    """Endless training batches; the batch at a step is a pure function of the step.

    So a checkpoint needs to remember the step only, and a run that was killed continues with the
    very batch that would have come next.

    Attributes:
        batch_size: rows of the whole batch of a step, over all workers.
        num_workers: 1 where every worker reads whole batches; otherwise how many workers share a
            batch, of which this source gives one worker's rows only.
        open_features: the arrays whose last size differs from batch to batch.
    """

    batch_size: int
    num_workers: int = 1
    open_features: frozenset[str] = frozenset()

    def batch_at(self, step: int) -> Batch:
        """Gives the batch of a step; each array is [rows, ...]."""
        ...

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ..."""
        return map(self.batch_at, itertools.count(step))

    def where(self, step: int) -> str:
        """Names the examples of a step's batch, for a person."""
        ...


class EvaluationSource(Protocol):
    """One pass over a finite set; every batch has the same number of rows.

    The last batch is padded; `example_weights` [batch] tells real rows (1) from padding (0).
    `open_features` are those of a `BatchSource`.
    """

    open_features: frozenset[str] = frozenset()

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        ...


_END = object()


@contextlib.contextmanager
def prefetched(items: Iterable[Any], ahead: int = 2) -> Iterator[Iterator[Any]]:
    """Runs an iterator in a thread that keeps up to `ahead` items ready for the caller.

    An error in the iterator is raised where its item is read; leaving the block ends the thread.

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


def split_batch(batch: Batch, replicas: int, micro_batches: int) -> dict[str, np.ndarray]:
    """Splits a batch into [replicas, micro_batches, rows, ...], padded so that all parts are equal.

    Padding repeats row 0 with `example_weights` 0, so it counts nowhere.

    Example:
        >>> parts = split_batch({"x": np.array([5, 6, 7])}, replicas=2, micro_batches=1)
        >>> parts["x"].tolist(), parts["example_weights"].tolist()
        ([[[5, 6]], [[7, 5]]], [[[1.0, 1.0]], [[1.0, 0.0]]])
    """
    rows = len(next(iter(batch.values())))
    size = -(-rows // (replicas * micro_batches))
    positions = np.arange(replicas * micro_batches * size)
    real = positions < rows
    weights = np.asarray(batch.get(EXAMPLE_WEIGHTS, np.ones(rows, np.float32)), np.float32)
    chosen = np.where(real, positions, 0)
    padded = {name: np.asarray(array)[chosen] for name, array in batch.items()}
    padded[EXAMPLE_WEIGHTS] = weights[chosen] * real.astype(np.float32)
    return {
        name: array.reshape(replicas, micro_batches, size, *array.shape[1:])
        for name, array in padded.items()
    }


def distribute(
    strategy: Any, parts: Mapping[str, np.ndarray], axis: int = 0, first: int = 0
) -> Any:
    """Hands each replica its part of every array, along an axis that is taken away.

    Gives a dict of per-replica tensors, to be passed to `strategy.run`.
    """
    import tensorflow as tf

    def part_of(context: Any) -> dict[str, Any]:
        replica = context.replica_id_in_sync_group - first
        return {name: tf.constant(array.take(replica, axis)) for name, array in parts.items()}

    return strategy.experimental_distribute_values_from_function(part_of)


def traced_open(
    function: Any, strategy: Any, names: frozenset[str], features: Any, *others: Any
) -> Any:
    """A `tf.function` as one trace for features of which some have any last size.

    TensorFlow by itself would trace each size that comes, and XLA's kernels with it.
    """
    import tensorflow as tf

    if not names:
        return function

    def spec_of(name: str, value: Any) -> Any:
        given = tf.type_spec_from_value(value)
        if name not in names:
            return given
        parts = strategy.experimental_local_results(value)
        specs = [tf.TensorSpec([*one.shape[:-1], None], one.dtype) for one in parts]
        return specs[0] if isinstance(given, tf.TensorSpec) else type(given)(*specs)

    # It is found again where such features were traced before.
    return function.get_concrete_function(
        {name: spec_of(name, value) for name, value in features.items()}, *others
    )


def share_of(batch: Batch, worker: int, workers: int) -> dict[str, np.ndarray]:
    """The rows of a whole batch that one of several workers computes.

    Example:
        >>> share_of({"x": np.array([5, 6, 7])}, worker=1, workers=2)["x"].tolist()
        [7]
    """
    return {name: np.array_split(np.asarray(a), workers)[worker] for name, a in batch.items()}


def stack_batches(batches: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Stacks the same arrays of several steps along a new first axis.

    Example:
        >>> stack_batches([{"x": np.array(1)}, {"x": np.array(2)}])["x"].tolist()
        [1, 2]
    """
    return {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}


def call_length(
    start: int, end: int, longest: int, stops: Sequence[int], boundaries: Sequence[int] = ()
) -> int:
    """How many of the steps from `start` to `end` the next compiled call takes.

    A call ends at every multiple of a stop (a save, an evaluation; 0 means never), so that what
    happens there sees the state of that very step.

    Example:
        >>> [call_length(start, 12, 4, [10, 0], [4]) for start in (3, 4, 8, 10)]
        [1, 4, 2, 2]
    """
    due = [(start // every + 1) * every for every in stops if every]
    nearest = min([end, *due, *(step for step in boundaries if step > start)])
    return min(longest, nearest - start)


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of a run."""

    batches: BatchSource  # whose own step 0 is the phase's first step
    num_steps: int
    learning_rate: float  # the peak that the run's schedule is scaled by while it lasts
    epoch: int | None = None  # the examples of one, where they are known


def one_phase(
    batches: BatchSource, config: TrainingConfig, epoch: int | None = None
) -> list[Phase]:
    """A run of one phase, with the steps and the learning rate of its configuration."""
    return [Phase(batches, config.num_train_steps, config.learning_rate, epoch)]


class PhasedBatches:
    """The batches of all phases one after the other: again a function of the step."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = list(phases)
        self.batch_size = phases[0].batches.batch_size
        self.num_workers = phases[0].batches.num_workers

    @property
    def boundaries(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(phase.num_steps for phase in self._phases))

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; the last phase never ends."""
        for number, phase in enumerate(self._phases):
            last = number == len(self._phases) - 1
            if step < phase.num_steps or last:
                stream = phase.batches.batches_from(max(step, 0))
                yield from stream if last else itertools.islice(stream, phase.num_steps - step)
            step = max(step - phase.num_steps, 0)

    def where(self, step: int) -> str:
        phase, step = self.phase_of(step)
        return phase.batches.where(step)

    def phase_of(self, step: int) -> tuple[Phase, int]:
        """The phase that a step lies in, and the step's number in it."""
        *earlier, last = self._phases
        for phase in earlier:
            if step < phase.num_steps:
                return phase, step
            step -= phase.num_steps
        return last, step
