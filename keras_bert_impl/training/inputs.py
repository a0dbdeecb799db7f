"""What one compiled call of the training step is fed."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_bert_impl.training.batches import Batch, BatchSource
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.split import chunk_lengths, share_of
from keras_bert_impl.training.step import TrainingStep


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A few steps' inputs, ready on the devices.

    Attributes:
        first_step: the steps done before.
        features: each replica's part of the batches.
        numbers: learning rates, normalizers and step numbers.
        learning_rates: one a step.
        examples: rows of each batch, those of other workers included.
        tokens: places of each batch, padding included; 0 where the data has no `input_mask`.
        padding_share: the share of this worker's places that are padding.
    """

    first_step: int
    features: Any
    numbers: Any
    learning_rates: tuple[float, ...]
    examples: int
    tokens: int
    padding_share: float


def chunks(
    step: TrainingStep,
    batches: BatchSource,
    config: TrainingConfig,
    rate: Callable[[int], float],
    start: int,
    end: int,
) -> Iterator[Chunk]:
    """Prepares the inputs of the steps from `start` to `end`; a thread may run this.

    Args:
        step: cuts and places the batches.
        batches: the data.
        config: how long a chunk may be, and where it must end.
        rate: the learning rate by the number of steps done.
        start: steps already done.
        end: steps to do in all.
    """
    stream = batches.batches_from(start)
    devices = step.devices
    whole = getattr(batches, "num_workers", 1) == 1 and devices.workers > 1
    size_at = getattr(batches, "batch_size_at", lambda _step: batches.batch_size)
    stops = (config.save_checkpoints_steps, config.eval_steps)
    boundaries = getattr(batches, "boundaries", ())
    for count in chunk_lengths(start, end, config.iterations_per_loop, stops, boundaries):
        chunk: list[Batch] = [next(stream) for _ in range(count)]
        if whole:
            chunk = [share_of(batch, devices.worker, devices.workers) for batch in chunk]
        rates = tuple(rate(done) for done in range(start, start + count))
        features, numbers = step.prepare(chunk, start, rates)
        length, padding = _sizes(chunk[0])
        examples = size_at(start)
        yield Chunk(start, features, numbers, rates, examples, examples * length, padding)
        start += count


def _sizes(batch: Batch) -> tuple[int, float]:
    """The examples' length (0 where none is known), and the share of padding."""
    mask = batch.get("input_mask")
    if mask is None:
        return 0, 0.0
    return mask.shape[1], 1.0 - float(np.count_nonzero(mask)) / mask.size
