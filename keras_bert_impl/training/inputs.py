"""What one compiled call of the training step is fed."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_bert_impl.training.batches import Batch, BatchSource
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.split import chunk_lengths
from keras_bert_impl.training.step import TrainingStep


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A few steps' inputs, ready on the devices.

    Attributes:
        first_step: the steps done before.
        features: each replica's part of the batches.
        numbers: learning rates, normalizers and step numbers.
        learning_rates: one a step.
        examples: rows of each batch.
        tokens: places of each batch, padding included; 0 where the data has no `input_mask`.
        padding_share: the share of the places that are padding.
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
    stops = (config.save_checkpoints_steps, config.eval_steps)
    boundaries = getattr(batches, "boundaries", ())
    for count in chunk_lengths(start, end, config.iterations_per_loop, stops, boundaries):
        chunk = [next(stream) for _ in range(count)]
        rates = tuple(rate(done) for done in range(start, start + count))
        features, numbers = step.prepare(chunk, start, rates)
        examples, tokens, padding = _sizes(chunk[0])
        yield Chunk(start, features, numbers, rates, examples, tokens, padding)
        start += count


def _sizes(batch: Batch) -> tuple[int, int, float]:
    mask = batch.get("input_mask")
    if mask is None:
        return len(next(iter(batch.values()))), 0, 0.0
    return len(mask), mask.size, 1.0 - float(np.count_nonzero(mask)) / mask.size
