"""The rows of a task's splits in memory, a model's outputs for them, and the answers of both."""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.engines.engine import Features, check_finite
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine, real_features
from keras_bert_impl.engines.openvino_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, EvaluationSource
from keras_bert_impl.training.objectives import Objective
from pipelines.fine_tuning.counts import RowCounts
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.task import Head, Task
from pipelines.fine_tuning.text_rows import ranges
from pipelines.records.rows import Numbers, Rows

if TYPE_CHECKING:
    from pipelines.fine_tuning.row_batches import RowEvaluation

_EXAMPLES_AT_ONCE = 2048
_MOST_OF_MEMORY = 0.5

Predicts = Callable[[EvaluationSource], Iterator[Mapping[str, NDArray]]]


class RowSet:
    """The rows of one split in memory, read by their numbers.

    Integers take the fewest bytes that hold all of a feature: a token of a pair of texts takes
    three to four with its mask and segment. Each block counts its examples from 0.
    """

    def __init__(self, blocks: Iterable[Rows], source: str = "rows") -> None:
        tokens, values = dict[str, _Column](), dict[str, _Column]()
        examples, lengths = _Column(np.uint32), _Column(np.uint32)
        self.num_examples = 0
        self._choices: int | None = None
        most = _MOST_OF_MEMORY * _memory()
        for block in filter(len, blocks):
            before = (tokens.keys(), self._choices)
            if len(lengths) and (block.tokens.keys(), block.choices) != before:
                raise ValueError(f"a block holds {[*block.tokens]}, those before it {[*tokens]}")
            self._choices = block.choices
            numbers = block.examples + self.num_examples
            self.num_examples = int(numbers[-1]) + 1
            examples.append(numbers)
            lengths.append(block.lengths)
            for columns, arrays in ((tokens, block.tokens), (values, block.values)):
                for name, array in arrays.items():
                    columns.setdefault(name, _Column()).append(array)
            if (size := sum(one.nbytes for one in (*tokens.values(), *values.values()))) > most:
                raise UserError(
                    f"{source}: the rows of its first {self.num_examples:,} examples take "
                    f"{size / 2**30:.1f} GiB, half of this machine's memory; give a part of it, or "
                    "use a machine with more memory."
                )
        self.examples: NDArray[np.uint32] = examples.array
        self.lengths: NDArray[np.uint32] = lengths.array
        self._tokens, self._values, self.features = tokens, values, {*tokens, *values}
        sizes = self.lengths.astype(np.int64) * (self._choices or 1)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def identity(self) -> str:
        """Tells one set from another, for a message and for a run that is resumed."""
        columns, checksum = (*self._tokens.values(), *self._values.values()), 0
        for array in (self.examples, self.lengths, *(column.array for column in columns)):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        return f"{self.num_examples} examples, {len(self)} rows, crc32 {checksum:08x}"

    @property
    def segment_ids(self) -> NDArray:
        """Of all tokens, which of two texts each is of."""
        return self._tokens["segment_ids"].array

    def read(self, numbers: Numbers) -> Rows:
        """Reads rows in the order of their numbers: int64 [n]."""
        starts = self._offsets[numbers]
        places = ranges(starts, self._offsets[np.asarray(numbers) + 1] - starts)
        return Rows(
            self.examples[numbers].astype(np.int64),
            self.lengths[numbers].astype(np.int64),
            {name: column.read(places) for name, column in self._tokens.items()},
            {name: column.read(numbers) for name, column in self._values.items()},
            self._choices,
        )

    def blocks(self, rows: int = 2048) -> Iterator[tuple[int, Rows]]:
        """All rows, about so many at a time but whole examples, with the number of the first."""
        start = 0
        while start < len(self):
            stop = min(start + rows, len(self))
            while stop < len(self) and self.examples[stop] == self.examples[stop - 1]:
                stop += 1
            yield start, self.read(np.arange(start, stop))
            start = stop


class _Column:
    """Numbers that are appended block after block, in the fewest bytes that hold all of them.

    While all are the same one (a mask), it is kept once.
    """

    def __init__(self, kind: type[np.generic] = np.uint8) -> None:
        self.array = np.zeros(0, kind)
        self._is_constant = False

    def __len__(self) -> int:
        return len(self.array)

    @property
    def nbytes(self) -> int:
        return 0 if self._is_constant else self.array.nbytes

    def append(self, values: NDArray) -> None:
        """Adds numbers [n, ...]: the array grows where it is, without a copy beside it."""
        if not values.size:
            return
        kind, before = values.dtype, len(self.array)
        if np.issubdtype(kind, np.integer):
            kind = np.result_type(*map(np.min_scalar_type, (values.min(), values.max())))
        kind = np.result_type(self.array.dtype, kind)
        if self._is_constant or not before:
            same = self.array[0] if before else values.flat[0]
            if values.ndim == 1 and (values == same).all():
                self.array = np.broadcast_to(np.array(same, kind), before + len(values))
                self._is_constant = True
                return
            self.array = np.array(self.array) if before else np.zeros((0, *values.shape[1:]), kind)
            self._is_constant = False
        if kind != self.array.dtype:
            self.array = self.array.astype(kind)
        self.array.resize((before + len(values), *self.array.shape[1:]), refcheck=False)
        self.array[before:] = values

    def read(self, numbers: Numbers) -> NDArray:
        """The numbers at some places: int32 or float32 [n, ...]."""
        is_float = np.issubdtype(self.array.dtype, np.floating)
        return self.array[numbers].astype(np.float32 if is_float else np.int32)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class RowOutputs:
    """A model's outputs for all rows by name; of token outputs those of real tokens only."""

    def __init__(self, rows: RowSet, token_outputs: Iterable[str] = ()) -> None:
        self._token_outputs = frozenset(token_outputs)
        self._lengths = rows.lengths.astype(np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        self._arrays: dict[str, NDArray] = {}

    def add(self, numbers: Numbers, outputs: Mapping[str, NDArray]) -> None:
        """Keeps the outputs of some rows: [n, ...], or [n, length, ...] of token outputs."""
        for name, array in outputs.items():
            places, values, size = numbers, array, len(self._lengths)
            if name in self._token_outputs:
                values = array[np.arange(array.shape[1]) < self._lengths[numbers][:, None]]
                places = ranges(self._offsets[numbers], self._lengths[numbers])
                size = int(self._offsets[-1])
            check_finite({name: values}, "the model")  # no answer is chosen by NaN
            if name not in self._arrays:
                self._arrays[name] = np.zeros((size, *values.shape[1:]), values.dtype)
            self._arrays[name][places] = values

    def read(self, start: int, stop: int) -> dict[str, NDArray]:
        """The outputs of the rows `start` to `stop`; token outputs flat, [tokens of these, ...]."""
        first, last = self._offsets[[start, stop]].tolist()
        return {
            name: array[first:last] if name in self._token_outputs else array[start:stop]
            for name, array in self._arrays.items()
        }

    def padded(self, start: int, rows: Rows) -> dict[str, NDArray]:
        """The outputs of some rows as a loss takes them: token outputs [rows, length, ...]."""
        outputs = self.read(start, start + len(rows))
        flat = {name: outputs.pop(name) for name in self._token_outputs & outputs.keys()}
        whole = Rows(rows.examples, rows.lengths, flat, outputs)
        return whole.padded(int(rows.lengths.max()))


@dataclass(frozen=True)
class Split:
    """A split of a task with its rows, and what was counted of them."""

    name: str
    rows: RowSet
    counts: RowCounts

    @classmethod
    def make(
        cls, task: Task[Any, Any], name: str, tokenizer: Tokenizer, max_seq_length: int
    ) -> "Split":
        counts = RowCounts(task, name, tokenizer.vocabulary)
        rows_of = task.training_rows if name == task.train_split else task.rows
        progress = Progress(f"tokenize {name}", None, "examples")

        def blocks() -> Iterator[Rows]:
            examples = iter(task.examples(name))
            while some := list(islice(examples, _EXAMPLES_AT_ONCE)):
                rows = rows_of(some, tokenizer, max_seq_length)
                if not np.array_equal(np.unique(rows.examples), np.arange(len(some))):
                    raise ValueError("a task must make one row or more for every example, in order")
                counts.add(some, rows)
                yield rows
                progress.advance(len(some))

        rows = RowSet(blocks(), counts.name)
        progress.close()
        return cls(name, rows, counts)


@dataclass(frozen=True)
class AnsweredSplit:
    """See `Answered`."""

    task: Task[Any, Any]
    split: Split
    outputs: RowOutputs

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        examples = iter(self.task.examples(self.split.name))
        for start, rows in self.split.rows.blocks():
            first, last = rows.examples[[0, -1]].tolist()
            own = replace(rows, examples=rows.examples - first)
            outputs = self.outputs.read(start, start + len(rows))
            some = list(islice(examples, last + 1 - first))
            yield from zip(some, self.task.answers(some, own, outputs), strict=True)


def engine_prediction(
    config: FineTuningConfig, head: Head, source: ModelSource, rows: RowSet
) -> Predicts:
    """The outputs of a task's model by the engine of the options; rows give the scales of int8."""
    names = head.objective.input_names

    def some_rows() -> list[Features]:
        numbers = evenly_spread(range(len(rows)), CALIBRATION_ROWS)
        alone = (rows.read(np.array([one])).padded(int(rows.lengths[one])) for one in numbers)
        return [real_features(one, names) for one in alone]

    engine = open_engine(
        head.model, config.engine, config.engine_precision, source.graphs_beside, some_rows
    )
    return EnginePrediction(engine, names)


def compute_outputs(
    split: str, rows: RowSet, source: "RowEvaluation", predict: Predicts, head: Head
) -> RowOutputs:
    """Computes the outputs of all rows."""
    outputs = RowOutputs(rows, head.token_outputs)
    progress = Progress(f"compute {split}", len(rows), "rows")
    pairs = zip(source.numbers(), predict(source), strict=True)
    for numbers, values in progress.over(pairs, lambda pair: len(pair[0])):
        outputs.add(numbers, values)
    return outputs


def mean_loss(
    task: Task[Any, Any],
    objective: Objective,
    rows: RowSet,
    outputs: RowOutputs,
    labels: Sequence[str],
) -> float | None:
    """The loss of what answers: rows, or joined ones; None where `labels` for it are missing."""
    if missing_labels(rows, labels):
        return None
    objective = objective.without_padding()
    counts: dict[str, Any] = {}
    for _, block in rows.blocks():
        for name, count in objective.normalizers(_compared(block, task.joins)).items():
            counts[name] = counts.get(name, np.float64(0)) + count
    total = 0.0
    for start, block in rows.blocks():
        given: Mapping[str, Any] = outputs.padded(start, block)
        given = task.joined(block, given) if task.joins else given
        total += float(objective.loss(given, _compared(block, task.joins), counts)[0])
    return total


def missing_labels(rows: RowSet, labels: Sequence[str]) -> list[str]:
    """The features among `labels` that rows do not have: without them there is no loss."""
    return [name for name in labels if name not in rows.features]


def _compared(rows: Rows, joins: bool) -> dict[str, np.ndarray]:
    """What outputs are compared with: the features of rows, or of each example once."""
    features = rows.padded(int(rows.lengths.max()))
    if not joins:
        return features
    firsts = np.flatnonzero(np.diff(rows.examples, prepend=-1))
    return {name: x[firsts] for name, x in features.items() if name != EXAMPLE_WEIGHTS}
