"""A task whose model learns from a trained one: from its outputs for the task's rows and others.

The teacher answers once, by the fastest engine, before the training begins; what it computes inside
is computed in the step.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource, label_names, model_identity
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.engines.config import FLOAT32, OPENVINO
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.options import check_options, option
from keras_bert_impl.training.config import dtype_policy
from pipelines.fine_tuning.row_batches import LengthRule, RowEvaluation
from pipelines.fine_tuning.row_set import RowSet, compute_outputs
from pipelines.fine_tuning.task import Facts, Head, Task, TrainingRows
from pipelines.records.rows import Rows

_TEXTS_AT_ONCE = 32
_LABELLED = "labelled"  # as `training.distillation` calls it, which imports TensorFlow


@dataclass(frozen=True, kw_only=True)
class TeachingConfig:
    """What a student learns of its teacher."""

    lessons: str = option(
        "outputs",
        "What is learned: outputs, the teacher's logits or vectors; hidden_states, those of every "
        "layer as well (TinyBERT); or relations, those among the queries, keys and values of the "
        "last layer as well (MiniLM, version 2). The last two compute the teacher in every step.",
        choices=("outputs", "hidden_states", "relations"),
    )
    temperature: float = option(
        2.0, "What logits are divided by before they are compared.", more_than=0, at_most=100
    )
    label_weight: float = option(
        0.0,
        "The share of the labels' own loss, of rows that have a label; vectors have none.",
        at_least=0,
        at_most=1,
    )

    def __post_init__(self) -> None:
        check_options(self)


class Unlabelled(NamedTuple):
    """An example that only the teacher answers, and the task that reads it."""

    task: Any
    example: Any


class Teacher:
    """A trained model of a task: its outputs for rows are computed once, and kept in a folder."""

    def __init__(self, task: Task[Any, Any], source: ModelSource, folder: Path) -> None:
        self.source, self._task, self._folder = source, task, folder
        own, wanted = source.labels, tuple(label_names(self._config).values())
        if own and wanted and own != wanted:
            raise UserError(
                f"{source.checkpoint}: its labels are {', '.join(own)}, but the files have "
                f"{', '.join(wanted)}; name the model that was trained for them as `teacher`."
            )

    @property
    def _config(self) -> Any:
        return self._task.configure(self.source.config)

    def outputs(self, rows: Rows) -> Mapping[str, NDArray]:
        """By their names, of rows [rows, ...], of token outputs flat [tokens, ...]."""
        digest = hashlib.sha256(f"{self._identity} {rows.lengths.tolist()}".encode())
        for name in sorted(rows.tokens):
            digest.update(np.ascontiguousarray(rows.tokens[name]).tobytes())
        path = self._folder / f"{digest.hexdigest()[:16]}.npz"
        if not path.is_file():
            few = RowSet([rows])
            source = RowEvaluation(few, _TEXTS_AT_ONCE, LengthRule())
            found = compute_outputs("teacher", few, source, self._predict, self.head)
            with open_whole(make_folder(self._folder) / path.name, "wb") as file:
                np.savez(file, **found.read(0, len(few)))  # type: ignore[arg-type]
        with np.load(path, allow_pickle=False) as kept:
            return dict(kept)

    @cached_property
    def _identity(self) -> str:
        return model_identity(str(self.source.checkpoint))

    @cached_property
    def head(self) -> Head:
        """The model, with its weights."""
        head = self._task.head(self._config, dtype_policy(FLOAT32))
        report = restore(head.model, self.source.tensors())
        if missing := [one for one in report.new if not one.startswith(("pooler", "embeddings"))]:
            raise UserError(
                f"{self.source.checkpoint}: holds no trained head for {self._task.name} (its "
                f"{missing[0]} is missing); name a fine-tuned model as `teacher`."
            )
        self._task.restored(head.model, self.source)
        return head

    @cached_property
    def _predict(self) -> EnginePrediction:
        engine = open_engine(self.head.model, OPENVINO, FLOAT32)
        return EnginePrediction(engine, self.head.objective.input_names)


class TaughtTask:
    """A task with its teacher's outputs in the training rows; all else is the task's own.

    `unlabelled` are more examples to learn from, of which the teacher's answers are all that is
    known, the only ones unless the task `has_rows` of its own; `layers` of the teacher are those
    that the student was cut from.
    """

    def __init__(
        self,
        task: Any,
        teacher: Teacher,
        config: TeachingConfig,
        layers: Sequence[int],
        has_rows: bool = True,
        unlabelled: Callable[[], Iterable[Unlabelled]] = tuple,
    ) -> None:
        self._task, self._teacher, self._config = task, teacher, config
        self._layers, self._has_rows, self._unlabelled = layers, has_rows, unlabelled
        self._like: Rows | None = None  # the first rows, which say what all have

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the task, and what was learned of whom."""
        config = self._config
        how = [config.lessons, config.temperature, config.label_weight]
        return {
            **self._task.settings,
            "taught_by": str(self._teacher.source.checkpoint),
            "how": how,
        }

    def files(self, split: str) -> Sequence[Path]:
        """Those of the task; none where it has no examples of its own to train on."""
        own = split != self._task.train_split or self._has_rows
        return self._task.files(split) if own else ()

    def examples(self, split: str) -> Iterator[Any]:
        """Those of the task, and to train on those without labels."""
        training = split == self._task.train_split
        if self._has_rows or not training:
            yield from self._task.examples(split)
        if training:
            yield from self._unlabelled()

    def texts(self, example: Any) -> Iterable[str]:
        if isinstance(example, Unlabelled):
            example = example.example
        found: Iterable[str] = self._task.texts(example)
        return found

    def facts(self, example: Any) -> Facts:
        if isinstance(example, Unlabelled):
            return Facts(compared=False)
        found: Facts = self._task.facts(example)
        return found

    def rows(
        self, examples: Sequence[Any], tokenizer: Any, max_seq_length: int, *, training: bool
    ) -> Rows:
        """Those of the task; of training with the teacher's outputs, and all of one form."""
        if not training:
            made: Rows = self._task.rows(examples, tokenizer, max_seq_length, training=False)
            return made
        parts = []
        for is_labelled, group in groupby(examples, lambda one: not isinstance(one, Unlabelled)):
            some = list(group)
            task = self._task if is_labelled else some[0].task
            own = some if is_labelled else [one.example for one in some]
            rows = task.rows(own, tokenizer, max_seq_length, training=is_labelled)
            parts.append(self._with_lessons(rows, is_labelled))
        return _joined(parts)

    def _with_lessons(self, rows: Rows, labelled: bool) -> Rows:
        from keras_bert_impl.training.distillation import lesson_feature

        tokens, values = dict(rows.tokens), dict(rows.values)
        values[_LABELLED] = np.full(len(rows), labelled, np.float32)
        token_outputs = self._teacher.head.token_outputs
        for name, array in self._teacher.outputs(rows).items():
            features = tokens if name in token_outputs else values
            features[lesson_feature(name)] = array
        like = self._like = self._like or Rows(rows.examples, rows.lengths, tokens, values)
        size = int(rows.offsets()[-1])
        return Rows(
            rows.examples,
            rows.lengths,
            {name: tokens.get(name, _zeros(size, one)) for name, one in like.tokens.items()},
            {name: values.get(name, _zeros(len(rows), one)) for name, one in like.values.items()},
            rows.choices,
            rows.num_truncated,
        )

    def head(self, config: Any, dtype: Any = None) -> Head:
        from keras_bert_impl.models.encoder import BertEncoder
        from keras_bert_impl.training.distillation import (
            OUTPUTS,
            DistillationObjective,
            InnerLessons,
            lesson_feature,
        )

        own, how, inner = self._task.head(config, dtype), self._config, None
        if how.lessons != OUTPUTS:
            path = str(self._teacher.source.checkpoint)
            encoder = BertEncoder.from_pretrained(path, return_all_layers=True, dtype=dtype)
            inner = InnerLessons(encoder, how.lessons, self._layers)
        weight = 0.0 if own.objective.couples_rows else how.label_weight
        names = [*own.model.output]
        objective = DistillationObjective(own.objective, names, how.temperature, weight, inner)
        lessons = tuple(map(lesson_feature, names))
        return Head(own.model, objective, lessons, own.token_outputs)

    def batches(self, training: TrainingRows) -> None:
        """None: rows in any order, whatever the task's own loss compares."""
        del training

    def num_training_rows(self, rows: RowSet) -> int:
        return len(rows)


def _zeros(count: int, like: NDArray) -> NDArray:
    return np.zeros((count, *like.shape[1:]), like.dtype)


def _joined(parts: Sequence[Rows]) -> Rows:
    """Rows of examples that follow one another."""
    firsts = np.cumsum([0, *(int(part.examples[-1]) + 1 for part in parts)])

    def of(features: Callable[[Rows], Mapping[str, NDArray]]) -> dict[str, NDArray]:
        return {
            name: np.concatenate([features(part)[name] for part in parts])
            for name in features(parts[0])
        }

    return Rows(
        np.concatenate([part.examples + first for part, first in zip(parts, firsts, strict=False)]),
        np.concatenate([part.lengths for part in parts]),
        of(lambda part: part.tokens),
        of(lambda part: part.values),
        parts[0].choices,
    )
