"""A task whose model learns from a trained one: from its outputs for the task's rows and others.

The teacher answers once, by the fastest engine, before the training begins; what it computes inside
is computed in the step.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.restore import refuse_untrained, restore
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import FLOAT32, OPENVINO
from keras_bert_impl.engines.open_engine import EnginePrediction, open_engine
from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import file_sha256, make_folder, open_whole
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.training import distillation
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from keras_bert_impl.training.config import dtype_policy
from pipelines.fine_tuning.row_batches import LengthRule, RowEvaluation
from pipelines.fine_tuning.row_set import RowSet, compute_outputs
from pipelines.fine_tuning.start import model_content
from pipelines.fine_tuning.task import Facts, Head, TrainingRows
from pipelines.fine_tuning.teaching_options import DistillConfig
from pipelines.records.rows import Rows

_TEXTS_AT_ONCE = 32


class Lesson(NamedTuple):
    """An example to learn from, the task that read it, and whether that read a label."""

    task: Any
    example: Any
    labelled: bool = False


class TaughtTask:
    """A task whose training rows are what a teacher answers; `layers` are those of the student."""

    evaluates_start = False  # a model that lacks layers

    def __init__(
        self,
        task: Any,
        teacher: ModelSource,
        config: DistillConfig,
        layers: Sequence[int],
        lessons: Callable[[], Iterator[Lesson]],
    ) -> None:
        self._task, self._source, self._config = task, teacher, config
        self._layers, self._lessons = layers, lessons
        self._labels_of: Rows | None = None  # the first rows with labels
        self._answers, self._used = config.output_dir / "teacher", set[Path]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the task, and what was learned of whom."""
        how = self._config
        learned = (how.teacher, how.lessons, how.temperature, how.label_weight)
        return {**self._task.settings, "taught": [*learned, self.teacher_sha256]}

    @cached_property
    def teacher_sha256(self) -> str:
        return model_content(self._source, file_sha256)

    @cached_property
    def compared_figures(self) -> Sequence[str]:
        """Those of the task, else all of its scores: no row has what a loss is made of."""
        task, named = self._task, self._task.compared_figures
        return named or [*task.score(task.guessing(task.evaluation_splits[0]).answered)]

    def files(self, split: str) -> Sequence[Path]:
        if split != self.train_split:
            return self._task.files(split)
        how = self._config
        return [Path(name) for name in (how.train_file, *how.unlabelled_file) if name]

    def examples(self, split: str) -> Iterator[Any]:
        return self._lessons() if split == self.train_split else self._task.examples(split)

    def texts(self, example: Any) -> Iterable[str]:
        return self._task.texts(example.example if isinstance(example, Lesson) else example)

    def facts(self, example: Any) -> Facts:
        """Those of the task; lessons are compared by their texts alone."""
        return Facts() if isinstance(example, Lesson) else self._task.facts(example)

    def training_rows(self, examples: Sequence[Any], tokenizer: Any, max_seq_length: int) -> Rows:
        """Those of the task, with the teacher's outputs."""
        parts = []
        for _, group in groupby(examples, lambda one: id(one.task)):
            tasks, own, labelled = zip(*group, strict=True)
            rows = tasks[0].rows(own, tokenizer, max_seq_length)
            parts.append(self._taught(rows, labelled[0]))
        joined = RowSet(parts)
        return joined.read(np.arange(len(joined)))

    def _taught(self, rows: Rows, labelled: bool) -> Rows:
        """What is learned of rows: the inputs, the answers, and labels where they count."""
        head = self._teacher
        weight = self._config.label_weight
        labels = set(head.labels) if weight else set()
        labelled = not labels or (labelled and labels <= {*rows.tokens, *rows.values})
        labels_of = self._labels_of = self._labels_of or (rows if labelled else None)
        if labels_of is None:
            raise UserError(
                f"`label_weight={weight}`: there are no labels to learn from; name a "
                "`train_file` that has some."
            )
        wanted = {*head.objective.input_names, EXAMPLE_WEIGHTS} | labels
        tokens = {n: x for n, x in rows.tokens.items() if n in wanted}
        values = {n: x for n, x in rows.values.items() if n in wanted}
        for name in () if labelled else labels:
            of_tokens = name in labels_of.tokens
            like = (labels_of.tokens if of_tokens else labels_of.values)[name]
            size = int(rows.offsets()[-1]) if of_tokens else len(rows)
            found = np.zeros((size, *like.shape[1:]), like.dtype)
            (tokens if of_tokens else values)[name] = found
        values[distillation.LABELLED] = np.full(len(rows), labelled, np.float32)
        for name, array in self._outputs(rows).items():
            (tokens if name in head.token_outputs else values)[distillation.TEACHER + name] = array
        return replace(rows, tokens=tokens, values=values)

    def _outputs(self, rows: Rows) -> Mapping[str, NDArray]:
        """The teacher's outputs, computed once: of rows [rows, ...], else flat [tokens, ...]."""
        facts = [self.teacher_sha256, self._task.settings, rows.lengths.tolist()]
        digest = hashlib.sha256(f"{facts}".encode())
        for name in sorted(rows.tokens):
            digest.update(np.ascontiguousarray(rows.tokens[name]).tobytes())
        path = self._answers / f"{digest.hexdigest()[:16]}.npz"
        self._used.add(path)
        with (
            contextlib.suppress(UserError),  # they are not there, or damaged
            reading(path, "the answers of a teacher"),
            np.load(path, allow_pickle=False) as kept,
        ):
            return dict(kept)
        few = RowSet([rows])
        source = RowEvaluation(few, _TEXTS_AT_ONCE, LengthRule())
        found = compute_outputs("teacher", few, source, self._predict, self._teacher)
        answers = found.read(0, len(few))
        with open_whole(make_folder(path.parent) / path.name, "wb") as file:
            np.savez(file, **answers)  # type: ignore[arg-type]
        return answers

    def forget_other_answers(self) -> None:
        """Removes the kept answers, to other lessons or of another teacher, that were not used."""
        found = () if self._answers.is_symlink() else self._answers.glob(f"{'[0-9a-f]' * 16}.npz")
        for path in {*found} - self._used:
            path.unlink(missing_ok=True)

    @cached_property
    def _teacher(self) -> Head:
        return trained_head(self._task, self._source, self._source.config)

    @cached_property
    def _predict(self) -> EnginePrediction:
        engine = open_engine(self._teacher.model, OPENVINO, FLOAT32)
        return EnginePrediction(engine, self._teacher.objective.input_names)

    def head(self, config: Any, dtype: Any = None) -> Head:
        own, how, inner = self._task.head(config, dtype), self._config, None
        if how.lessons != distillation.OUTPUTS:
            encoder = BertEncoder(self._source.config, return_all_layers=True, dtype=dtype)
            restore(encoder, self._source.tensors())
            inner = distillation.InnerLessons(encoder, how.lessons, self._layers)
        names, weight = [*own.model.output], how.label_weight
        objective = distillation.DistillationObjective(
            own.objective, names, how.temperature, weight, inner
        )
        lessons = tuple(distillation.TEACHER + name for name in names)
        return Head(own.model, objective, lessons, own.token_outputs)

    def batches(self, training: TrainingRows) -> None:
        """Rows in any order, whatever the task's own loss compares."""

    def num_training_rows(self, rows: RowSet) -> int:
        return len(rows)


def trained_head(task: Any, source: ModelSource, config: BertConfig) -> Head:
    """A trained model of a task, for an engine."""
    head: Head = task.head(task.configure(config), dtype_policy(FLOAT32))
    report, remedy = restore(head.model, source.tensors()), "name a fine-tuned model as `teacher`"
    refuse_untrained(head.model, report, f"head for {task.name}", remedy)
    task.restored(head.model, source)
    return head
