"""Batches for losses over vectors: rows of like length, no two of them with a text in common."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.vector_step import LABELS, PLACES, part_feature
from pipelines.fine_tuning.row_batches import BatchLengths, LengthOrder
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Numbers
from pipelines.tasks.vectors.files import CLASSES, VectorData

Batch = Mapping[str, np.ndarray]

_COUNTED_STEPS = 1000


class DistinctOrder(LengthOrder):
    """The order of `LengthOrder`, where no two rows of a batch have a key in common.

    Inside each window of batches a row goes into the first batch that has room and none of its
    keys. A row that fits nowhere waits for a later epoch, whose windows hold other rows, and the
    place is taken by another row of the window. So batches stay of like lengths, and an epoch has
    nearly all rows once, where not too many share an answer.

    Args:
        keys: of each row what no other row of its batch may have.
    """

    def __init__(
        self, lengths: NDArray, batch_size: int, seed: int, keys: Sequence[frozenset[int]]
    ) -> None:
        super().__init__(lengths, batch_size, seed)
        self._keys, self._seed = keys, seed

    def arranged(self, rows: Numbers) -> Numbers:
        """Divides rows into batches: int64 [batches, batch_size]."""
        size, count = self._batch_size, len(rows) // self._batch_size
        batches: list[list[int]] = [[] for _ in range(count)]
        seen: list[set[int]] = [set() for _ in range(count)]
        first = 0
        for row in rows.tolist():
            own = self._keys[row]
            for number in range(first, count):
                if len(batches[number]) < size and seen[number].isdisjoint(own):
                    batches[number].append(row)
                    seen[number] |= own
                    break
            while first < count and len(batches[first]) == size:
                first += 1
        for number, batch in enumerate(batches):
            if len(batch) < size:
                self._fill(batch, seen[number], np.roll(rows, -number * size))
        return np.array(batches, np.int64)

    def _fill(self, batch: list[int], seen: set[int], near: Numbers) -> None:
        """Takes rows of the window, then any rows, into the places that are left."""
        draws = np.random.default_rng([self._seed % 2**32, *near[:4].tolist()])
        others: Iterator[int] = chain(near.tolist(), draws.permutation(len(self._keys)).tolist())
        while len(batch) < self._batch_size:
            row = next((one for one in others if seen.isdisjoint(self._keys[one])), None)
            if row is None:
                raise UserError(
                    f"`train_batch_size={self._batch_size}`: there are not so many rows of which "
                    "no two have a text in common; lower it, or give more texts."
                )
            batch.append(row)
            seen |= self._keys[row]


class VectorBatches:
    """Endless batches of a `VectorObjective`; the batch at a step is a pure function of the step.

    The texts of all columns are sorted by length and divided into parts of as many texts, each
    padded to one of at most eight lengths: a question is not padded to the length of its passage.

    Args:
        texts: a row for each text.
        rows: int [rows, columns], the texts of each row.
        keys: see `DistinctOrder`; None lets any rows be together.
        texts_at_once: how many texts a part has at most, for each replica.
    """

    def __init__(
        self,
        texts: RowSet,
        rows: NDArray[np.int32],
        labels: NDArray[np.float32] | None,
        keys: Sequence[frozenset[int]] | None,
        *,
        batch_size: int,
        seed: int,
        texts_at_once: int,
        replicas: int = 1,
        fixed_length: int | None = None,
    ) -> None:
        self._texts, self._rows, self._labels = texts, rows, labels
        self.batch_size, self.num_workers = batch_size, 1
        longest = texts.lengths[rows].max(axis=1)  # what a row takes is decided by its longest text
        make = LengthOrder if keys is None else DistinctOrder
        self._order = make(longest, batch_size, seed, *([] if keys is None else [keys]))
        of_replica = -(-batch_size * rows.shape[1] // replicas)
        parts = -(-of_replica // texts_at_once)
        self._shape = (parts, replicas, -(-of_replica // parts))
        if fixed_length is not None:
            self._lengths = BatchLengths.fixed(fixed_length)
            return
        steps = min(-(-len(rows) // batch_size), _COUNTED_STEPS)
        found = [self._longest(*self._parts_of(step)) for step in range(steps)]
        self._lengths = BatchLengths.fitted(np.concatenate(found), int(texts.lengths.max()))

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ..."""
        while True:
            yield self.batch_at(step)
            step += 1

    def batch_at(self, step: int) -> Batch:
        """The batch of one step; see `VectorObjective`."""
        rows, parts = self._parts_of(step)
        count, replicas, size = self._shape
        # Where vectors will stand: those of a replica together, one part after the other.
        places = np.arange(replicas * count * size).reshape(replicas, count, size)
        texts = self._rows[rows].reshape(-1)
        standing = np.empty(len(texts), np.int32)
        standing[parts.reshape(-1)] = places.transpose(1, 0, 2).reshape(-1)
        batch: dict[str, np.ndarray] = {PLACES: standing.reshape(len(rows), -1)}
        for number, length in enumerate(self._longest(rows, parts).tolist()):
            own = texts[parts[number].reshape(-1)]
            padded = self._texts.read(own).padded(self._lengths.of(np.array([length])))
            for name in ENCODER_INPUTS:
                batch[part_feature(name, number)] = padded[name].reshape(replicas, size, -1)
        if self._labels is not None:
            batch[LABELS] = self._labels[rows]
        return batch

    def where(self, step: int) -> str:
        """Names the rows of a step's batch, counted from 0."""
        rows = sorted(self._order.rows_of(step).tolist())
        return f"rows {', '.join(map(str, rows))} of the training split"

    def _parts_of(self, step: int) -> tuple[Numbers, Numbers]:
        """The rows of a step, and how its texts are divided: int64 [parts, replicas, texts].

        The parts number the texts of the rows, row after row. What is missing to full parts are
        copies of the shortest text.
        """
        rows = self._order.rows_of(step)
        lengths = self._texts.lengths[self._rows[rows].reshape(-1)]
        order = np.argsort(lengths, kind="stable")
        more = int(np.prod(self._shape)) - len(order)
        return rows, np.concatenate([np.repeat(order[:1], more), order]).reshape(self._shape)

    def _longest(self, rows: Numbers, parts: Numbers) -> NDArray[np.uint32]:
        """The tokens of the longest text of each part."""
        return self._texts.lengths[self._rows[rows].reshape(-1)[parts]].max(axis=(1, 2))


def keys_of(texts: RowSet, rows: NDArray[np.int32], data: VectorData) -> list[frozenset[int]]:
    """What no other row of a row's batch may have, because it would be a false negative.

    These are its texts, as the model reads them (two that become the same tokens are one), and all
    documents that the table has for its query; of classes the class.
    """
    if data.kind == CLASSES:
        assert data.labels is not None, "classes are labels"
        return [frozenset([int(label)]) for label in data.labels]
    seen: dict[bytes, int] = {}
    same = np.empty(len(texts), np.int64)
    for first, block in texts.blocks():
        ids = np.split(block.tokens["input_ids"], np.cumsum(block.lengths)[:-1])
        for number, one in enumerate(ids, first):
            same[number] = seen.setdefault(one.tobytes(), number)
    documents: dict[int, set[int]] = defaultdict(set)
    for query, document in zip(same[rows[:, 0]].tolist(), same[rows[:, 1]].tolist(), strict=True):
        documents[query].add(document)
    return [frozenset((*row, *documents[row[0]])) for row in same[rows].tolist()]
