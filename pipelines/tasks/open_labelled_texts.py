"""From files and options to a task: columns, labels and weights found, everything checked."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.task_settings import task_settings
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.tasks.label_survey import (
    Survey,
    are_stand_ins,
    dev_thresholds,
    in_order,
    survey_scored,
    survey_training,
    warn_of_shared_rows,
)
from pipelines.tasks.labelled_columns import (
    Columns,
    Kind,
    Labelling,
    as_label,
    check_columns,
    check_first_row,
    choose_columns,
    find_labelling,
)
from pipelines.tasks.labelled_examples import Source
from pipelines.tasks.labelled_files import LabelledFile, open_labelled
from pipelines.tasks.labelled_texts import HeldOut, LabelledTexts
from pipelines.tasks.labelled_texts_config import LabelledTextsConfig

_LOGGER = logging.getLogger(__name__)
_UNDECIDED = "-"


def open_labelled_texts(
    config: LabelledTextsConfig,
    long_texts: LongTexts | None = None,
    trained: ModelSource | None = None,
) -> LabelledTexts:
    """Reads all files once and makes the task, or says what is wrong with them.

    Args:
        config: the files, and what is in them.
        long_texts: what becomes of texts that are longer than a row; None: they are truncated.
        trained: the model that is scored or answers, which knows its labels; None where one is
            trained from `train_file`.

    Raises:
        UserError: a file, a column or a row is not what it should be.
    """
    if trained is None and config.train_file is None:
        raise UserError("training needs `train_file`; name a file of labelled examples.")
    task = _Opening(config, trained).task()
    return task if long_texts is None else replace(task, long_texts=long_texts)


class _Opening:
    """The steps by which a task is opened."""

    def __init__(self, config: LabelledTextsConfig, trained: ModelSource | None) -> None:
        self._config, self._trained = config, trained
        self._known = {} if trained is None else task_settings(trained.config)
        # Scoring needs the training file only for the dev set that was cut off it.
        needs_training = trained is None or config.dev_share
        names = {
            "train": config.train_file if needs_training else None,
            "dev": config.dev_file,
            "test": config.test_file,
        }
        self._files = {split: self._open(name) for split, name in names.items() if name}
        if config.dev_share and "train" not in self._files:
            raise UserError(
                f"`dev_share={config.dev_share}` is a share of the training file; name it with "
                "`train_file`."
            )

    def task(self) -> LabelledTexts:
        """Finds columns and labels, and surveys all files."""
        config = self._config
        if not self._files:
            raise UserError(
                "there is no file to score or to answer; name one with `dev_file` or `test_file`."
            )
        columns = self._columns()
        training: Survey | None = None
        held_out = None
        sources: dict[str, Source] = {}
        if "train" in self._files:
            sources["train"] = self._source("train", columns, self._labelling("train", columns))
            training = survey_training(sources["train"], config.dev_seed)
            if config.dev_share:
                self._check_same_share()
                held_out = self._held_out(training)
                sources["dev"] = sources["train"]
        kind, labels = self._kind_and_labels(training, columns)
        for split in ("dev", "test"):
            if split in self._files:
                source = self._scored(split, columns, kind, labels)
                sources[split] = source
                if training:
                    warn_of_shared_rows(training, source, config.dev_seed)
        _say_what_is_scored(sources)
        return LabelledTexts(
            kind,
            labels,
            sources,
            self._options(columns),
            held_out=held_out,
            class_weights=self._weights(kind, labels, training),
            prediction_format=config.prediction_format,
            num_mistakes=config.num_mistakes,
        )

    def _held_out(self, training: Survey) -> HeldOut:
        config = self._config
        thresholds = dev_thresholds(training, config.dev_share)
        if not any(thresholds.values()):
            raise UserError(
                f"{training.source.file.name}: `dev_share={config.dev_share}` of its "
                f"{training.rows} rows is not one row of any label; give a larger share, or a "
                "`dev_file`."
            )
        return HeldOut(thresholds, config.dev_seed)

    def _open(self, name: str) -> LabelledFile:
        config = self._config
        folder = config.tfds_data_dir
        return open_labelled(
            name,
            header=self._config.has_header,
            quotation=config.quotation,
            data_dir=None if folder is None else str(folder),
        )

    def _columns(self) -> Columns:
        """The columns in the first file, which the other files have as well."""
        config = self._config
        split, file = next(iter(self._files.items()))
        columns = choose_columns(
            file,
            config.text_column,
            config.text_pair_column,
            config.label_column,
            labelled=split != "test",
        )
        for other in self._files.values():
            check_columns(other, columns.texts)
            if config.header is None:
                check_first_row(other, columns.texts)
        return columns

    def _labelling(self, split: str, columns: Columns) -> Labelling:
        file = self._files[split]
        check_columns(file, columns.labels)
        found = find_labelling(
            file,
            columns.labels,
            regression=self._is_regression(),
            ignored=self._ignored_labels(),
        )
        if found is None:
            raise UserError(
                f"{file.name}: no row has a label in the column "
                f"{', '.join(map(repr, columns.labels))}; name another `label_column`."
            )
        return found

    def _is_regression(self) -> bool:
        if self._trained is None:
            return self._config.regression
        # As transformers has it: where nothing is said, one label is a number.
        problem = self._trained.config.extra.get("problem_type")
        return problem == "regression" or (problem is None and len(self._trained.labels) == 1)

    def _source(self, split: str, columns: Columns, labelling: Labelling | None) -> Source:
        return Source(self._files[split], columns, labelling, frozenset(self._ignored_labels()))

    def _ignored_labels(self) -> tuple[str, ...]:
        """The labels whose rows are left out."""
        return tuple(map(as_label, self._config.ignored_labels))

    def _scored(self, split: str, columns: Columns, kind: Kind, labels: Sequence[str]) -> Source:
        """A dev or test file; of a test file labels are read where it has them."""
        file = self._files[split]
        has_columns = bool(columns.labels) and set(columns.labels) <= set(file.columns)
        if split == "test" and not has_columns:
            return self._source(split, columns, None)
        check_columns(file, columns.labels)
        found = None
        if split == "dev" or not are_stand_ins(file, columns.labels, kind):
            found = find_labelling(
                file,
                columns.labels,
                regression=kind == "number",
                ignored=self._ignored_labels(),
            )
        if found is not None and found.kind != kind:
            raise UserError(
                f"{file.name}: its labels are {_IN_WORDS[found.kind]}, but those of training are "
                f"{_IN_WORDS[kind]}; write them alike."
            )
        source = self._source(split, columns, found)
        if found is not None and survey_scored(source, labels, required=split == "dev"):
            return source
        if split == "dev":
            raise UserError(
                f"{file.name}: no row has a label in the column "
                f"{', '.join(map(repr, columns.labels))}; name another `label_column`."
            )
        _LOGGER.warning("%s: its labels are none of training's; it is not scored.", file.name)
        return self._source(split, columns, None)

    def _kind_and_labels(
        self, training: Survey | None, columns: Columns
    ) -> tuple[Kind, tuple[str, ...]]:
        if self._trained is not None:
            return self._trained_kind(columns), self._trained_labels()
        assert training is not None
        assert training.source.labelling is not None
        kind = training.source.labelling.kind
        if kind == "columns":
            return kind, columns.labels
        labels = in_order(training.labels)
        if labels:
            _LOGGER.info("labels: %s", ", ".join(labels[:50]))
        if _UNDECIDED in labels and not {"+", "0"} & set(labels):
            _LOGGER.warning(
                "%s: %d rows have the label %r, which is learned as any other; in SNLI and MNLI "
                "it says that people did not agree. Leave such rows out with "
                "`ignored_labels=%s`.",
                training.source.file.name,
                training.labels[_UNDECIDED],
                _UNDECIDED,
                _UNDECIDED,
            )
        return kind, labels

    def _trained_kind(self, columns: Columns) -> Kind:
        assert self._trained is not None
        if self._is_regression():
            return "number"
        if self._trained.is_multi_label:
            return "columns" if len(columns.labels) > 1 else "several"
        return "one"

    def _trained_labels(self) -> tuple[str, ...]:
        assert self._trained is not None
        return () if self._is_regression() else self._trained.labels

    def _weights(
        self, kind: Kind, labels: Sequence[str], training: Survey | None
    ) -> tuple[float, ...] | None:
        given = self._config.class_weights
        balanced = tuple(given) == ("balanced",)
        if self._trained is not None and (balanced or not given):
            # Those that were found on the training file.
            known = self._known.get("class_weights") or {}
            known = {**known, **{as_label(label): weight for label, weight in known.items()}}
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
            "header": self._config.has_header,
            "quotation": config.quotation,
            "ignored_labels": list(self._ignored_labels()),
            "dev_share": config.dev_share,
            "dev_seed": config.dev_seed,
            # Of a model that is evaluated; they change nothing of it.
            **{name: self._known[name] for name in ("label_units",) if name in self._known},
        }

    def _check_same_share(self) -> None:
        """Refuses to score rows on which the model was trained."""
        config, known = self._config, self._known
        now = (config.dev_share, config.dev_seed)
        if self._trained is not None and (known.get("dev_share"), known.get("dev_seed")) != now:
            raise UserError(
                f"`dev_share={config.dev_share}`: the model was trained with a dev_share of "
                f"{known.get('dev_share') or 0} and a dev_seed of {known.get('dev_seed') or 0}, so "
                "that some of these rows are training rows; give the same ones."
            )


_IN_WORDS: Mapping[Kind, str] = {
    "one": "single labels",
    "several": "lists",
    "columns": "a column each",
    "number": "numbers",
}


def balanced_weights(kind: Kind, counts: Sequence[int], rows: int) -> tuple[float, ...]:
    """Weights by which rare labels count as much as frequent ones.

    Of one label an example, rows / (labels * count), as by scikit-learn; of several labels at once
    the rows without the label for each row with it.

    Example:
        >>> balanced_weights("one", [30, 10], 40)
        (0.6666666666666666, 2.0)
        >>> balanced_weights("several", [30, 10], 40)
        (0.3333333333333333, 3.0)
    """
    if kind == "one":
        return tuple(rows / (len(counts) * count) for count in counts)
    return tuple(max(rows - count, 1) / count for count in counts)


def parse_weights(given: Sequence[str], labels: Sequence[str]) -> tuple[float, ...]:
    """Reads weights as a user gives them.

    Raises:
        UserError: not of the form LABEL=WEIGHT, an unknown label, or a weight of 0 or less.

    Example:
        >>> parse_weights(["spam=2.5"], ["ham", "spam"])
        (1.0, 2.5)
    """
    weights = dict.fromkeys(labels, 1.0)
    for one in given:
        label, _, number = as_label(one).rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if label not in weights:
            raise UserError(
                f"`class_weights={one}`: there is no label {label!r}; give balanced, or "
                f"LABEL=WEIGHT for some of {', '.join(labels[:12])}."
            )
        if not (math.isfinite(weight) and weight > 0):
            raise UserError(f"`class_weights={one}`: the weight must be a number more than 0.")
        weights[label] = weight
    return tuple(weights.values())


def _say_what_is_scored(sources: Mapping[str, Source]) -> None:
    if "dev" not in sources and not (sources.get("test") and sources["test"].labelling):
        _LOGGER.info(
            "There is no labelled file beside the training file: nothing will be scored; give "
            "`dev_file` or `dev_share` for that."
        )
