"""The data of a task as a run needs it: its rows in files, and the answers of a model to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import keras_bert_impl
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256
from keras_bert_impl.progress import Progress
from keras_bert_impl.tokenization.character_table import CharacterTable
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.unknown_words import WordCounter
from keras_bert_impl.training.objectives import Objective
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.fine_tuning.task import ROWS_VERSION, Joining, Task
from pipelines.fine_tuning.text_rows import EXAMPLE_WEIGHTS
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.row_set import RowSet, make_rows
from pipelines.records.rows import Rows

_EXAMPLES_AT_ONCE = 2048


@dataclass(frozen=True)
class TaskData:
    """The rows of a task's splits, made for one tokenizer and one length.

    Attributes:
        task: the task.
        tokenizer: the model's.
        max_seq_length: the most tokens of a row.
        folder: where the rows stand, a folder for each split and for all that its rows come from:
            files, tokenizer, length, the task's settings and the code's version. They are used
            again where the same is asked for; several processes may share the folder.
        encoding: how the text of the task's files stands in bytes.
    """

    task: Task[Any, Any]
    tokenizer: Tokenizer
    max_seq_length: int
    folder: Path
    encoding: TextEncoding = UTF_8

    def rows(self, split: str) -> RowSet:
        """Makes the rows of a split, or finds them made."""
        made_from = self._made_from(split)
        counter = WordCounter(self.tokenizer.vocabulary)
        return make_rows(
            self.folder / f"rows-{split}",
            made_from,
            self._made(split, made_from),
            lambda rows: counter.count(rows.tokens["input_ids"]),
        )

    def _made(self, split: str, made_from: Mapping[str, Any]) -> Iterator[Rows]:
        progress = Progress(f"tokenize {split}", None, "examples")
        examples = iter(self.task.examples(split))
        training = split == self.task.train_split
        while block := list(islice(examples, _EXAMPLES_AT_ONCE)):
            rows = self.task.rows(block, self.tokenizer, self.max_seq_length, training=training)
            _check_all_have_rows(rows, len(block))
            yield rows
            progress.advance(len(block))
        progress.close()
        _check_unchanged(self.task.files(split), made_from)

    def _made_from(self, split: str) -> dict[str, Any]:
        text = self.tokenizer.settings
        return {
            "task": self.task.name,
            "settings": dict(self.task.settings),
            "split": split,
            "training": split == self.task.train_split,
            "files": [file_sha256(path) for path in self.task.files(split)],
            "versions": {
                "rows": ROWS_VERSION,
                "keras_bert_impl": keras_bert_impl.__version__,
                "unicode": CharacterTable.load().unicode_version,
            },
            "max_seq_length": self.max_seq_length,
            "vocabulary_sha256": text.vocabulary.sha256,
            **text.as_json(),
            **self.encoding.settings,
        }


@dataclass(frozen=True)
class AnsweredSplit:
    """The examples of a split with their answers, made anew each time they are read.

    Attributes:
        task: the task.
        split: the split.
        rows: its rows.
        outputs: a model's outputs for all of them.

    Reading raises a `UserError` where a file is not the one any more that the rows were made from.
    """

    task: Task[Any, Any]
    split: str
    rows: RowSet
    outputs: RowOutputs

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        files = self.task.files(self.split)
        _check_unchanged(files, self.rows.description.made_from)
        examples = iter(self.task.examples(self.split))
        first_example = 0
        for start, rows in self.rows.blocks():
            count = int(rows.examples[-1]) + 1 - first_example
            some = list(islice(examples, count))
            if len(some) < count:
                raise _changed(files)
            own = rows.of(0, len(rows), first_example)
            outputs = self.outputs.read(start, start + len(rows))
            yield from zip(some, self.task.answers(some, own, outputs), strict=True)
            first_example += len(some)
        if next(examples, None) is not None:
            raise _changed(files)


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
    joins = isinstance(task, Joining)
    counts: dict[str, Any] = {}
    for _, block in rows.blocks():
        for name, count in objective.normalizers(_compared(block, joins)).items():
            counts[name] = counts.get(name, np.float64(0)) + count
    total = 0.0
    for start, block in rows.blocks():
        given: Mapping[str, Any] = outputs.padded(start, block)
        given = task.joined(block, given) if isinstance(task, Joining) else given
        total += float(objective.loss(given, _compared(block, joins), counts)[0])
    return total


def missing_labels(rows: RowSet, labels: Sequence[str]) -> list[str]:
    """The features among `labels` that rows do not have, sorted: without them there is no loss."""
    return sorted(set(labels) - {feature.name for feature in rows.description.features})


def _compared(rows: Rows, joins: bool) -> dict[str, np.ndarray]:
    """What outputs are compared with: the features of rows, or of each example once."""
    features = rows.padded(int(rows.lengths.max()))
    if not joins:
        return features
    firsts = np.flatnonzero(np.diff(rows.examples, prepend=-1))
    return {name: x[firsts] for name, x in features.items() if name != EXAMPLE_WEIGHTS}


def _check_all_have_rows(rows: Rows, examples: int) -> None:
    if not np.array_equal(np.unique(rows.examples), np.arange(examples)):
        raise ValueError("a task must make one row or more for every example, in their order")


def _check_unchanged(files: Sequence[Path], made_from: Mapping[str, Any]) -> None:
    for file, sha256 in zip(files, made_from["files"], strict=True):
        if file_sha256(file) != sha256:
            raise _changed([file])


def _changed(files: Sequence[Path]) -> UserError:
    names = ", ".join(map(str, files))
    return UserError(f"{names}: changed since its rows were made; run again.")
