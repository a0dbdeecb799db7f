"""Batches for losses over vectors: rows of like length, no two of them with a text in common."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.batches import Batch, BatchSource
from keras_bert_impl.training.vector_step import LABELS, PLACES, part_feature
from pipelines.fine_tuning.row_batches import LengthOrder, LengthRule, counted_steps
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Numbers
from pipelines.tasks.vectors.files import CLASSES, VectorData

_TRIES = 30  # to make a batch


class RowKeys(NamedTuple):
    """What decides which rows may stand in one batch."""

    known: frozenset[int]  # the query, and all documents that are known to answer it
    others: frozenset[int] = frozenset()  # texts that may stand in several rows


class _Filled:
    """The rows of a batch so far."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._known, self._all = set[int](), set[int]()

    def takes(self, row: int, keys: RowKeys) -> bool:
        """Adds a row, unless what one row knows as an answer would be a negative of another."""
        clash = self._all & keys.known or self._known & keys.others
        if not clash:
            self.rows.append(row)
            self._known |= keys.known
            self._all |= keys.known | keys.others
        return not clash


class DistinctOrder(LengthOrder):
    """The order of `LengthOrder`, where no row of a batch has a false negative in another.

    Inside each window of batches a row goes into the first batch that has room for it. A row that
    fits nowhere waits for a later epoch, whose windows hold other rows, and the place is taken by
    another row of the window. So batches stay of like lengths, and an epoch has nearly all rows
    once, where not too many share an answer.
    """

    def __init__(
        self, lengths: NDArray, batch_size: int, seed: int, keys: Sequence[RowKeys]
    ) -> None:
        super().__init__(lengths, batch_size, seed)
        self._keys, self._seed = keys, seed

    def arranged(self, rows: Numbers) -> Numbers:
        """Divides rows into batches: int64 [batches, batch_size]."""
        size, count = self._batch_size, len(rows) // self._batch_size
        batches, first = [_Filled() for _ in range(count)], 0
        for row in rows.tolist():
            room = (one for one in batches[first:] if len(one.rows) < size)
            any(one.takes(row, self._keys[row]) for one in room)
            while first < count and len(batches[first].rows) == size:
                first += 1
        near = (np.roll(rows, -number * size) for number in range(count))
        return np.array([one.rows for one in map(self._filled, batches, near)], np.int64)

    def _filled(self, batch: _Filled, near: Numbers) -> _Filled:
        """Takes rows of the window, then any rows, into the places that are left."""
        draws = np.random.default_rng([self._seed % 2**32, *near[:4].tolist()])
        for _ in range(_TRIES):
            others = self._others(near, draws)
            while len(batch.rows) < self._batch_size:
                if not any(batch.takes(row, self._keys[row]) for row in others):
                    break
            else:
                return batch
            batch, near = _Filled(), near[:0]  # a row that fits to hardly any other was in the way
        raise UserError(
            f"`train_batch_size={self._batch_size}`: there are not so many rows of which none has "
            "an answer to another's query; lower it, or give more texts."
        )

    def _others(self, near: Numbers, draws: np.random.Generator) -> Iterator[int]:
        yield from near.tolist()
        yield from draws.permutation(len(self._keys)).tolist()  # of all rows: only where none fits


class VectorBatches(BatchSource):
    """Endless batches of a `VectorObjective`; the batch at a step is a pure function of the step.

    The texts of all columns are sorted by length and divided into parts of as many texts, each
    padded to one of a few lengths: a question is not padded to the length of its passage. For each
    replica a part has `texts_at_once` at most. Rows are int [rows, columns], numbers of texts;
    without `keys` any rows may be together.
    """

    def __init__(
        self,
        texts: RowSet,
        rows: NDArray[np.int32],
        labels: NDArray[np.float32] | None,
        keys: Sequence[RowKeys] | None,
        *,
        batch_size: int,
        seed: int,
        texts_at_once: int,
        replicas: int = 1,
        rule: LengthRule | None = None,
    ) -> None:
        self._texts, self._rows, self._labels = texts, rows, labels
        self.batch_size = batch_size
        longest = texts.lengths[rows].max(axis=1)  # what a row takes is decided by its longest text
        # Its lengths are those of all seeds, and of rows that may not be together, too.
        counted = LengthOrder(longest, batch_size, seed=0)
        self._order = LengthOrder(longest, batch_size, seed)
        if keys is not None:
            self._order = DistinctOrder(longest, batch_size, seed, keys)
            self._order.rows_of(0)  # notices here that a batch cannot be filled
        of_replica = -(-batch_size * rows.shape[1] // replicas)
        parts = -(-of_replica // texts_at_once)
        self._shape = (parts, replicas, -(-of_replica // parts))
        steps = counted_steps(len(rows), batch_size)
        self._lengths = (rule or LengthRule()).lengths(
            lambda: np.concatenate(
                [self._longest(one, self._parts_of(one)) for one in map(counted.rows_of, steps)]
            ),
            int(texts.lengths.max()),
            batch_size * rows.shape[1],
            parts,
        )
        if len(self._lengths.allowed) > 1:
            names = product(ENCODER_INPUTS, range(parts))
            self.open_features = frozenset(part_feature(*one) for one in names)

    def batch_at(self, step: int) -> Batch:
        rows = self._order.rows_of(step)
        parts = self._parts_of(rows)
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
        rows = sorted(self._order.rows_of(step).tolist())
        return f"rows {', '.join(map(str, rows))} of the training split"

    def _parts_of(self, rows: Numbers) -> Numbers:
        """How the texts of rows are divided: int64 [parts, replicas, texts].

        The parts number the texts of the rows, row after row. What is missing to full parts are
        copies of the shortest text.
        """
        lengths = self._texts.lengths[self._rows[rows].reshape(-1)]
        order = np.argsort(lengths, kind="stable")
        more = int(np.prod(self._shape)) - len(order)
        return np.concatenate([np.repeat(order[:1], more), order]).reshape(self._shape)

    def _longest(self, rows: Numbers, parts: Numbers) -> NDArray[np.uint32]:
        """The tokens of the longest text of each part."""
        return self._texts.lengths[self._rows[rows].reshape(-1)[parts]].max(axis=(1, 2))


def keys_of(texts: RowSet, rows: NDArray[np.int32], data: VectorData) -> list[RowKeys]:
    """The keys of rows: texts of the same tokens are one, and so are those of the same words."""
    if data.kind == CLASSES:  # no other text of its class may be a negative
        assert data.labels is not None, "classes are labels"
        return [RowKeys(frozenset([int(label)])) for label in data.labels]
    first_of: dict[bytes, int] = {}  # by 16 bytes, as texts may be many and long
    same = list(range(len(texts)))

    def first(number: int) -> int:
        while same[number] != number:
            number = same[number]
        return number

    for start, block in texts.blocks():
        ids = np.split(block.tokens["input_ids"], np.cumsum(block.lengths)[:-1])
        for number, one in enumerate(ids, start):
            # By tokens alone a query is another than the document that has its words and a prompt.
            words = " ".join(data.texts[number][1].lower().split())
            for said in (one.tobytes(), words.encode("utf-8", "replace")):
                key = hashlib.blake2b(said, digest_size=16).digest()
                least, most = sorted([first(number), first(first_of.setdefault(key, number))])
                same[most] = least
    numbers = np.array([first(number) for number in same])[rows]
    found: dict[int, set[int]] = defaultdict(set)
    for query, document in numbers[:, :2].tolist():
        found[query] |= {query, document}
    known = {query: frozenset(some) for query, some in found.items()}  # one for all its rows
    return [RowKeys(known[query], frozenset(others)) for query, _, *others in numbers.tolist()]
