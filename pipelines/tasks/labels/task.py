"""The task of a run for labels: one of GLUE, XNLI, or what files of one's own hold, all checked."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, reading
from pipelines.fine_tuning.heads import ClassificationHead, some_of
from pipelines.fine_tuning.start import TaskBuilder
from pipelines.tables.columns import Columns, check_columns, check_first_row, choose_columns
from pipelines.tables.files import TableFile
from pipelines.tasks.labels.glue import GLUE_TASKS, GlueTask, find_task
from pipelines.tasks.labels.labelling import (
    Kind,
    Labelling,
    LabelStatistics,
    Source,
    as_label,
    check_scored,
    dev_thresholds,
    find_labelling,
    finite_number,
    in_order,
    training_statistics,
)
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.own_texts import HeldOut, LabelledTexts
from pipelines.tasks.labels.rows import label_units

_LOGGER = logging.getLogger(__name__)


class _Found(NamedTuple):
    columns: Columns
    kind: Kind
    labels: tuple[str, ...]
    training: LabelStatistics | None
    held_out: HeldOut | None


class _Builder(TaskBuilder):
    """See `TaskBuilder`; the columns of the first file are those of all."""

    CONFIG = RunClassifierConfig
    TRAINING_IS_MISSING = "training needs `train_file`; name a file of labelled examples."
    NOTHING_TO_SCORE = (
        "`do_eval=True`: there is no labelled file to evaluate; name one with `dev_file`, give "
        "`dev_share`, or leave `do_eval` out."
    )

    @property
    def _needs_training(self) -> bool:
        # Scoring needs the training file only for the dev set that was cut off it.
        return self._trained is None or self._config.dev_share > 0

    def _find(self, files: Mapping[str, TableFile]) -> _Found:
        columns, training, held_out = self._columns(files), None, None
        if "train" in files:
            check_columns(files["train"], columns.labels)
            labelling = find_labelling(files["train"], columns.labels, self._is_regression())
            source = Source(files["train"], columns, labelling)
            training = training_statistics(source, self._config.dev_seed)
            held_out = self._held_out(training) if self._config.dev_share else None
        return _Found(columns, *self._kind_and_labels(training, columns), training, held_out)

    def _check(self, split: str, file: TableFile, found: _Found) -> Source:
        """A file with its labels; of a test file they are read where it has them."""
        if split == "train":
            assert found.training is not None
            return found.training.source
        columns, required = found.columns, split == "dev"
        has_labels = bool(columns.labels) and {*columns.labels} <= {*file.columns}
        if required or (has_labels and self._reads_labels(split)):
            check_columns(file, columns.labels)
            other = {*columns.labels} ^ {*found.labels} if found.kind == "columns" else set()
            if other:
                raise UserError(
                    f"{file.name}: `label_column` must name a column for each label of the model, "
                    f"{some_of(found.labels)}, and no other; add or remove "
                    f"{some_of(sorted(other))}."
                )
            known = found.labels, self._codes
            source = Source(file, columns, Labelling(found.kind, columns.labels, *known))
            if check_scored(source, found.labels, required=required):
                return source
            words = some_of(found.labels) or "numbers"
            _LOGGER.warning("%s: has no labels (%s); not evaluated.", file.name, words)
        return Source(file, columns, None)

    def _make(self, sources: Mapping[str, Source], found: _Found) -> LabelledTexts:
        if found.held_out:
            sources = {**sources, "dev": sources["train"]}
        if "dev" not in sources and not (sources.get("test") and sources["test"].labelling):
            _LOGGER.info(
                "There is no labelled file next to the training file: nothing will be evaluated; "
                "give `dev_file` or `dev_share` for that."
            )
        return LabelledTexts(
            found.kind,
            found.labels,
            sources,
            self._options(found.columns),
            held_out=found.held_out,
            class_weights=self._weights(found.kind, found.labels, found.training),
        )

    def _held_out(self, training: LabelStatistics) -> HeldOut:
        """The dev set of a training file."""
        share = self._config.dev_share
        thresholds = dev_thresholds(training, share)
        if not any(thresholds.values()):
            raise UserError(
                f"{training.source.file.name}: `dev_share={share}` of its {training.rows} rows is "
                "not one row of any label; give a larger share, or a `dev_file`."
            )
        return HeldOut(thresholds, self._config.dev_seed)

    def _columns(self, files: Mapping[str, TableFile]) -> Columns:
        """The columns in the first file, which the other files have as well."""
        config = self._config
        split, file = next(iter(files.items()))
        named = (config.text_column, config.text_pair_column, config.label_column)
        columns = choose_columns(file, *named, labelled=split != "test")
        for other in files.values():
            check_columns(other, columns.texts)
            if config.header is None:
                check_first_row(other, columns.texts)
        return columns

    @property
    def _codes(self) -> dict[str, str]:
        """The labels of a model of one of GLUE's tasks, by what stands in the task's files."""
        task = next((one for one in GLUE_TASKS if one.name == self._known.get("task")), None)
        head = task and task.head_of
        if not isinstance(head, ClassificationHead):
            return {}
        return dict(zip(head.labels, head.names, strict=True))

    def _is_regression(self) -> bool:
        if self._trained is None:
            return self._config.regression
        # As transformers has it: where nothing is said, one label is a number.
        problem = self._trained.config.extra.get("problem_type")
        return problem == "regression" or (problem is None and len(self._trained.labels) == 1)

    def _kind_and_labels(
        self, training: LabelStatistics | None, columns: Columns
    ) -> tuple[Kind, tuple[str, ...]]:
        if self._trained is not None:
            if self._is_regression():
                return "number", ()
            several: Kind = "columns" if len(columns.labels) > 1 else "several"
            return several if self._trained.is_multi_label else "one", self._trained.labels
        assert training is not None
        assert training.source.labelling is not None
        kind = training.source.labelling.kind
        if kind == "columns":
            return kind, columns.labels
        labels = in_order(training.labels)
        if labels:
            counted = [f"{label} ({training.labels[label]:,})" for label in labels]
            _LOGGER.info("labels: %s", some_of(counted))
        return kind, labels

    def _weights(
        self, kind: Kind, labels: Sequence[str], training: LabelStatistics | None
    ) -> tuple[float, ...] | None:
        given = self._config.class_weights
        balanced = tuple(given) == ("balanced",)
        if self._trained is not None and (balanced or not given):
            # Those that were found on the training file.
            known = self._known.get("class_weights") or {}
            known = {**known, **{as_label(label): weight for label, weight in known.items()}}
            with reading(self._trained.config.origin, "class_weights", "give `class_weights`"):
                return tuple(known[label] for label in labels) if known else None
        if not given:
            return None
        if balanced:
            assert training is not None
            return balanced_weights(kind, [training.labels[one] for one in labels], training.rows)
        return parse_weights(given, labels)

    def _options(self, columns: Columns) -> dict[str, Any]:
        config = self._config
        return {
            "text_column": columns.text,
            "text_pair_column": columns.text_pair,
            "label_column": list(columns.labels),
            "header": config.has_header,
            "dev_share": config.dev_share,
            "dev_seed": config.dev_seed,
            # Of a model that is evaluated; they change nothing of it.
            **{name: self._known[name] for name in ("label_units",) if name in self._known},
        }


def balanced_weights(kind: Kind, counts: Sequence[int], rows: int) -> tuple[float, ...]:
    """Weights by which rare labels count as much as frequent ones.

    Of one label an example, rows / (labels * count), as by scikit-learn; of several labels at once
    the rows without the label for each row with it (of a label without rows, as if it had one).

    Example:
        >>> balanced_weights("several", [30, 10], 40)
        (0.3333333333333333, 3.0)
    """
    if kind == "one":
        return tuple(rows / (len(counts) * count) for count in counts)
    return tuple(max(rows - count, 1) / max(count, 1) for count in counts)


def parse_weights(given: Sequence[str], labels: Sequence[str]) -> tuple[float, ...]:
    """Reads weights as a user gives them: LABEL=WEIGHT, 1 for all others."""
    weights = dict[str, float]()
    for one in given:
        label, _, number = as_label(one).rpartition("=")
        weight = finite_number(number) or 0.0
        if label not in labels or label in weights or weight <= 0:
            raise UserError(
                f"`class_weights={one}`: give balanced, or LABEL=WEIGHT, a number more than 0, for "
                f"some of {some_of(labels)}, each once."
            )
        weights[label] = weight
    return tuple(weights.get(label, 1.0) for label in labels)


def task_of(config: RunClassifierConfig) -> GlueTask | LabelledTexts:
    """The task that a configuration names, or the one that its files make."""
    if config.task_name is not None and config.data_dir is not None:
        return find_task(config.task_name).at(config.data_dir, config.long_texts)
    task: LabelledTexts = _Builder.for_run(config, config.own)
    task = replace(task, long_texts=config.long_texts)
    if not (config.do_train and task.kind == "number"):
        return task
    # One's own numbers are learned in units of the training labels.
    where = next(iter(task.files(task.train_split)), task.name)
    return replace(task, label_units=label_units(task.examples(task.train_split), where))
