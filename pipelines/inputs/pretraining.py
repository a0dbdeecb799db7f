"""Batches for pre-training: from indexed shards, in an order that is arithmetic.

Which record comes at a position of the endless sequence of epochs is a pure function of the seed
and the position. So a checkpoint needs to hold only the step, and a resumed run reads exactly the
records that an uninterrupted one would have read, even with another number of workers.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from pipelines.inputs.pretraining_records import PretrainingRecords
from pipelines.pretraining_data.draws import below, mix, seed_word
from pipelines.pretraining_data.masking import Targets
from pipelines.records.check import Expected

Numbers = NDArray[np.int64]
_ROUNDS = 6


def shuffled(positions: Numbers, size: int, key: np.uint64) -> Numbers:
    """A pseudo-random permutation of 0 .. size - 1, evaluated at some positions [n].

    Nothing of the size of the set is kept: a Feistel network over pairs (left, right) with
    `width * height >= size`.

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
    """Which record comes at each position of an endless sequence of epochs."""

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


Batch = Mapping[str, np.ndarray]


class PretrainingBatches:
    """Endless training batches; the batch at a step is a pure function of (seed, step).

    Batches hold the reference's features, int32 except for the weights (float32): `input_ids`,
    `input_mask`, `segment_ids` [batch, length], `masked_lm_positions`, `masked_lm_ids`,
    `masked_lm_weights` [batch, predictions], `next_sentence_labels` [batch, 1]. Unmasked shards of
    a dynamic recipe are masked here, anew in each epoch.
    """

    def __init__(
        self,
        input_files: Sequence[str],
        batch_size: int,
        expected: Expected,
        seed: int,
        shuffle: bool = True,
        worker: int = 0,
        num_workers: int = 1,
        targets: Targets | None = None,
    ) -> None:
        if batch_size < num_workers:
            raise UserError(
                f"`train_batch_size={batch_size}` leaves some of the {num_workers} workers without "
                "an example; raise it."
            )
        self._records = PretrainingRecords(input_files, expected, seed, targets)
        self._order = RecordOrder(len(self._records), seed, shuffle)
        self._part = np.array_split(np.arange(batch_size), num_workers)[worker]
        self.batch_size = batch_size
        self.num_workers = num_workers

    @property
    def num_examples(self) -> int:
        """Examples in an epoch."""
        return len(self._records)

    @property
    def copies_of_text(self) -> int:
        """How often an epoch reads the text."""
        return self._records.copies_of_text

    def batch_at(self, step: int) -> Batch:
        """The batch of one step."""
        epochs, records = self._order.at(step * self.batch_size + self._part)
        return self._records.batch(epochs, records)

    def where(self, step: int) -> str:
        """Names the records of one step's global batch, by shard."""
        _, records = self._order.at(step * self.batch_size + np.arange(self.batch_size))
        return self._records.reader.list_by_shard(records)

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; the training loop reads ahead."""
        return map(self.batch_at, itertools.count(step))


class PretrainingEvaluation:
    """One pass over shards in the order of their files, with `example_weights` [batch].

    The last batch is padded with copies of the first record, of weight 0. Dynamic masking is that
    of epoch 0, so every pass sees the same batches.
    """

    def __init__(
        self,
        input_files: Sequence[str],
        batch_size: int,
        expected: Expected,
        max_batches: int | None = None,
        targets: Targets | None = None,
    ) -> None:
        self._records = PretrainingRecords(input_files, expected, 0, targets)
        self.batch_size = batch_size
        batches = -(-len(self._records) // batch_size)
        self.num_batches = min(batches, max_batches or batches)

    @property
    def num_examples(self) -> int:
        """Real examples of the pass."""
        return min(len(self._records), self.num_batches * self.batch_size)

    def batches(self) -> Iterator[Batch]:
        """Gives the batches of one pass, in the same order every time."""
        for batch in range(self.num_batches):
            positions = np.arange(batch * self.batch_size, (batch + 1) * self.batch_size)
            real: NDArray[np.bool_] = positions < len(self._records)
            records = np.where(real, positions, 0)
            features = self._records.batch(np.zeros_like(records), records)
            yield {**features, EXAMPLE_WEIGHTS: real.astype(np.float32)}
