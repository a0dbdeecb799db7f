"""The splits of a task: their rows, a model's outputs for them by any engine, and the answers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine, real_features
from keras_bert_impl.engines.quantized_graph import CALIBRATION_ROWS, evenly_spread
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import frozen_features
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, EvaluationSource
from keras_bert_impl.training.evaluation import Prediction
from keras_bert_impl.training.objectives import Objective
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.row_batches import RowEvaluation
from pipelines.fine_tuning.row_set import RowOutputs, RowSet
from pipelines.fine_tuning.task import Head, Task
from pipelines.records.rows import Rows

_LOGGER = logging.getLogger(__name__)

_EXAMPLES_AT_ONCE = 2048

Predicts = Callable[[EvaluationSource], Iterator[Mapping[str, NDArray]]]


@dataclass(frozen=True)
class Split:
    """A split of a task with its rows."""

    task: Task[Any, Any]
    name: str
    rows: RowSet

    @classmethod
    def make(
        cls, task: Task[Any, Any], name: str, tokenizer: Tokenizer, max_seq_length: int
    ) -> "Split":
        """Reads a split's files to their end and makes its rows."""
        files = ", ".join(map(str, task.files(name))) or f"the split {name}"
        return cls(task, name, RowSet(_row_blocks(task, name, tokenizer, max_seq_length), files))


def _row_blocks(
    task: Task[Any, Any], split: str, tokenizer: Tokenizer, max_seq_length: int
) -> Iterator[Rows]:
    progress = Progress(f"tokenize {split}", None, "examples")
    examples = iter(task.examples(split))
    training = split == task.train_split
    while block := list(islice(examples, _EXAMPLES_AT_ONCE)):
        rows = task.rows(block, tokenizer, max_seq_length, training=training)
        if not np.array_equal(np.unique(rows.examples), np.arange(len(block))):
            raise ValueError("a task must make one row or more for every example, in their order")
        yield rows
        progress.advance(len(block))
    progress.close()


@dataclass(frozen=True)
class AnsweredSplit:
    """The examples of a split with their answers, made anew each time they are read."""

    task: Task[Any, Any]
    split: Split
    outputs: RowOutputs

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        examples = iter(self.task.examples(self.split.name))
        first_example = 0
        for start, rows in self.split.rows.blocks():
            count = int(rows.examples[-1]) + 1 - first_example
            own = rows.of(0, len(rows), first_example)
            outputs = self.outputs.read(start, start + len(rows))
            some = list(islice(examples, count))
            yield from zip(some, self.task.answers(some, own, outputs), strict=True)
            first_example += count


def engine_prediction(
    config: FineTuningConfig, head: Head, source: ModelSource, rows: RowSet
) -> Predicts:
    """The outputs of a task's model, by the engine of the options.

    Args:
        source: where they come from; the scales of int8 are kept there.
        rows: rows of a split; some of them give the scales of int8.
    """
    if frozen_features(source.config) is not None:
        raise UserError(
            f"`engine={config.engine}` computes no BiLSTM over frozen layers; leave it out."
        )
    names = head.objective.input_names
    folder: Path = source.folder
    engine = open_engine(
        head.model,
        config.engine,
        config.engine_precision,
        folder,
        partial(_calibration, rows, names),
    )
    return EnginePrediction(engine, names)


def _calibration(rows: RowSet, names: tuple[str, ...]) -> list[Features]:
    features: list[Features] = []
    for number in evenly_spread(range(len(rows)), CALIBRATION_ROWS):
        one = np.array([number])
        batch = rows.read(one).padded(int(rows.lengths[number]))
        features.append(real_features(batch, names))
    return features


def compute_outputs(
    split: str, rows: RowSet, source: RowEvaluation, predict: Predicts, head: Head
) -> RowOutputs:
    """Computes the outputs of all rows."""
    outputs = RowOutputs(rows, head.token_outputs)
    progress, before = Progress(f"compute {split}", source.num_rows, "rows"), _compiled(predict)
    for numbers, values in zip(source.numbers(), predict(source), strict=True):
        outputs.add(numbers, values)
        compiled, before = _compiled(predict) - before, _compiled(predict)
        progress.advance(len(numbers), compiled=compiled > 0)
    progress.close()
    return outputs


def _compiled(predict: Predicts) -> int:
    """How often the model was compiled so far."""
    return predict.num_compiled if isinstance(predict, Prediction) else 0


def mean_loss(
    task: Task[Any, Any],
    objective: Objective,
    rows: RowSet,
    outputs: RowOutputs,
    labels: Sequence[str],
) -> float | None:
    """The loss over all answers of a split; None where its rows do not have the labels.

    Where the task joins the rows of an example, it is that of the joined outputs, which answer: an
    example counts once, however many windows it has. Else all rows count alike.

    Args:
        task: the task.
        objective: the loss.
        rows: all rows of a split.
        outputs: a model's outputs for them.
        labels: the features that the loss compares with.
    """
    if missing_labels(rows, labels):
        return None
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
    """The features among `labels` that rows do not have, sorted: without them there is no loss."""
    return sorted(set(labels) - rows.features)


def _compared(rows: Rows, joins: bool) -> dict[str, np.ndarray]:
    """What outputs are compared with: the features of rows, or of each example once."""
    features = rows.padded(int(rows.lengths.max()))
    if not joins:
        return features
    firsts = np.flatnonzero(np.diff(rows.examples, prepend=-1))
    return {name: x[firsts] for name, x in features.items() if name != EXAMPLE_WEIGHTS}
