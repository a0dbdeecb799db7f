"""Splitting batches into equal parts for workers, replicas and micro-batches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch


def split_batch(batch: Batch, replicas: int, micro_batches: int) -> dict[str, np.ndarray]:
    """Splits a batch into [replicas, micro_batches, rows, ...], padded so that all parts are equal.

    Padding repeats row 0 with `example_weights` 0, so it counts nowhere.

    Args:
        batch: arrays [batch, ...], perhaps with `example_weights` float32 [batch].
        replicas: how many devices share it.
        micro_batches: how many parts each device computes one after the other.

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
    """Hands each replica its part of every array.

    Args:
        strategy: a `tf.distribute` strategy.
        parts: arrays whose `axis` counts the replicas.
        axis: which axis that is; it is taken away.
        first: the number of the replica that the first part is for (another worker has the ones
            before).

    Returns:
        A dict of per-replica tensors, to be passed to `strategy.run`.
    """
    import tensorflow as tf

    def part_of(context: Any) -> dict[str, Any]:
        replica = context.replica_id_in_sync_group - first
        return {name: tf.constant(array.take(replica, axis)) for name, array in parts.items()}

    return strategy.experimental_distribute_values_from_function(part_of)


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


def chunk_lengths(
    start: int, end: int, longest: int, stops: Sequence[int], boundaries: Sequence[int] = ()
) -> Iterator[int]:
    """Divides the steps from `start` to `end` into compiled calls.

    A call ends at every multiple of a stop (a save, an evaluation), so that what happens there
    sees the state of that very step.

    Args:
        start: steps already done.
        end: steps to do in all.
        longest: most steps in one call.
        stops: intervals at whose multiples a call must end; 0 means never.
        boundaries: single steps at which a call must end (the data changes its shape there).

    Example:
        >>> list(chunk_lengths(3, 12, 4, [10, 0], [4]))
        [1, 4, 2, 2]
    """
    while start < end:
        due = [(start // every + 1) * every for every in stops if every]
        nearest = min([end, *due, *(step for step in boundaries if step > start)])
        length = min(longest, nearest - start)
        yield length
        start += length
