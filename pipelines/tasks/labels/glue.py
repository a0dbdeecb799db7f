"""The tasks of GLUE, and XNLI: their files, labels and figures.

XNLI is MNLI's task in fifteen languages, read from the files as they are published:
`XNLI-1.0.zip` has `xnli.dev.tsv` and `xnli.test.tsv` with all languages in one file, and
`XNLI-MT-1.0.zip` has MNLI's training set in each language, `multinli/multinli.train.zh.tsv`. Both
are read where their archives put them, or without the archives' own folders, as
google-research/bert has them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_there
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning.heads import ClassificationHead, RegressionHead
from pipelines.fine_tuning.task import Answered
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics.classification import accuracy, f1_score, matthews_correlation
from pipelines.metrics.constant_answer import Metric, constant_scores
from pipelines.metrics.correlation import pearson_correlation, spearman_correlation
from pipelines.tables.files import read_table
from pipelines.tables.writing import write_submission, write_values
from pipelines.tasks.labels.options import LANGUAGES, XnliConfig, plain_name
from pipelines.tasks.labels.rows import LabelAnswer, LabelHead, LabelTask


@dataclass(frozen=True)
class Layout:
    """Where a task's files have what.

    Attributes:
        text_a: the column of the first text.
        text_b: the column of the second text, or None.
        label: the column of the label.
        index: the column that numbers a test set (where it is missing, the rows are counted).
        labelled_columns: the columns of labelled files that have no header.
        skip_broken_rows: whether GLUE's own file has rows that cannot be read.
    """

    text_a: str
    text_b: str | None
    label: str
    index: str = "index"
    labelled_columns: tuple[str, ...] | None = None
    skip_broken_rows: bool = False

    @property
    def texts(self) -> list[str]:
        """The columns of the texts."""
        return [self.text_a] if self.text_b is None else [self.text_a, self.text_b]


Labelled = Answered[TextExample, LabelAnswer]


@dataclass(frozen=True)
class GlueTask(LabelTask):
    r"""One task of GLUE; see `pipelines.fine_tuning.task.Task` for what its methods promise.

    Attributes:
        name: GLUE's name, e.g. "CoLA".
        layout: where its files have what.
        head_of: how labels become numbers, and the model over them.
        metrics: the official metrics by name.
        evaluation_splits: the labelled splits that are scored.
        test_splits: the splits that are answered.
        submissions: GLUE's file name of each test split.
        train_split: the split to train on.
        data_dir: the folder with its files.
        long_texts: what becomes of texts that are longer than a row.
        layouts: the layouts of splits that differ from `layout`.
        trained_on: the task whose model answers this one, where it has no training set.

    Example:
        >>> import tempfile
        >>> from pipelines.metrics.classification import accuracy
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "dev.tsv").write_text("text\tlabel\nIt rains.\t1\n")
        >>> head = ClassificationHead({"0": "no", "1": "yes"})
        >>> task = GlueTask("Toy", Layout("text", None, "label"), head, {"accuracy": accuracy},
        ...                 data_dir=folder)
        >>> (example,) = task.examples("dev")
        >>> task.score([(example, LabelAnswer("1", 1, np.array([0.1, 0.9])))])
        {'accuracy': 1.0}
    """

    name: str
    layout: Layout
    head_of: LabelHead
    metrics: Mapping[str, Metric]
    evaluation_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    submissions: tuple[str, ...] = ()
    train_split: str = "train"
    data_dir: Path = Path()
    long_texts: LongTexts = field(default_factory=LongTexts)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    trained_on: str | None = None

    def at(self, data_dir: Path, long_texts: LongTexts | None = None) -> "GlueTask":
        """The same task with its files in a folder, and long texts treated in a way."""
        return replace(self, data_dir=Path(data_dir), long_texts=long_texts or self.long_texts)

    @property
    def settings(self) -> dict[str, Any]:
        """The treatment of long texts and the units of numbers; see `Task.settings`."""
        return {**self.long_texts.settings, **self.head_of.settings}

    @property
    def num_texts(self) -> int:
        """How many texts an example has: 2 of pairs."""
        return len(self.layout.texts)

    def files(self, split: str) -> list[Path]:
        """`data_dir/split.tsv`; see `Task.files`.

        Raises:
            UserError: the task has no training set.
        """
        if split == self.train_split and self.trained_on:
            raise UserError(
                f"`do_train=True`: {self.name} has no training set; train on {self.trained_on} and "
                "name its model with `init_checkpoint`."
            )
        return [self.data_dir / f"{split}.tsv"]

    def examples(self, split: str) -> Iterator[TextExample]:
        """Reads `data_dir/split.tsv`; see `Task.examples`."""
        (path,) = self.files(split)
        layout = self.layouts.get(split, self.layout)
        labelled = split not in self.test_splits
        return self._read_labelled(path, layout) if labelled else self._read_test(path, layout)

    def score(self, answered: Labelled) -> dict[str, float]:
        """Gives GLUE's metrics; see `Task.score`."""
        pairs = [(answer.prediction, str(example.label)) for example, answer in answered]
        predictions = np.array([prediction for prediction, _ in pairs])
        labels = self.head_of.encode_all([label for _, label in pairs])
        return {name: metric(predictions, labels) for name, metric in self.metrics.items()}

    def constant_scores(self, split: str) -> dict[str, float]:
        """Gives the metrics of a labelled split where every example gets the same answer."""
        labels = [str(example.label) for example in self.examples(split)]
        return constant_scores(self.metrics, self.head_of.encode_all(labels))

    def write(self, folder: Path, split: str, answered: Labelled) -> list[Path]:
        """Writes `test_results.tsv`, as the original does, and GLUE's submission file."""
        number = self.test_splits.index(split)
        # MNLI has two test sets: the first keeps the original's file name.
        results = "test_results.tsv" if number == 0 else f"{split}_results.tsv"
        names = self.submissions or (f"{self.name}.tsv",)
        return [
            write_values(folder / results, (answer.values for _, answer in answered)),
            write_submission(
                folder / names[number],
                ((example.identifier, answer.label) for example, answer in answered),
            ),
        ]

    def _read_test(self, path: Path, layout: Layout) -> Iterator[TextExample]:
        # No row of a test set may be left out: the submission would lack its answer.
        for number, line in enumerate(read_table(path, layout.texts)):
            texts = [line.values[column] for column in layout.texts]
            yield TextExample(line.values.get(layout.index, str(number)), *texts)

    def _read_labelled(self, path: Path, layout: Layout) -> Iterator[TextExample]:
        lines = read_table(
            path,
            [*layout.texts, layout.label],
            columns=layout.labelled_columns,
            skip_broken_rows=layout.skip_broken_rows,
        )
        for number, line in enumerate(lines):
            text_b = line.values[layout.text_b] if layout.text_b else None
            label = line.values[layout.label]
            self.check_label(path, line.line, label)
            yield TextExample(str(number), line.values[layout.text_a], text_b, label)

    def check_label(self, path: Path, number: int, label: str) -> None:
        """Sees that a label is one of the task's.

        Raises:
            UserError: it is none; names the file and the line.
        """
        try:
            self.head_of.encode(label)
        except UserError as error:
            raise UserError(f"{path}: line {number}: {error}") from error


_ACCURACY: Mapping[str, Metric] = {"accuracy": accuracy}
_ACCURACY_AND_F1: Mapping[str, Metric] = {"accuracy": accuracy, "f1": f1_score}
_ENTAILMENT = ClassificationHead({"entailment": "entailment", "not_entailment": "not_entailment"})

COLA = GlueTask(
    "CoLA",
    Layout(
        "sentence",
        None,
        "label",
        labelled_columns=("source", "label", "original_mark", "sentence"),
    ),
    ClassificationHead({"0": "unacceptable", "1": "acceptable"}),
    {"matthews_correlation": matthews_correlation, "accuracy": accuracy},
)
SST_2 = GlueTask(
    "SST-2",
    Layout("sentence", None, "label"),
    ClassificationHead({"0": "negative", "1": "positive"}),
    _ACCURACY,
)
MRPC = GlueTask(
    "MRPC",
    Layout("#1 String", "#2 String", "Quality"),
    ClassificationHead({"0": "not_equivalent", "1": "equivalent"}),
    _ACCURACY_AND_F1,
)
STS_B = GlueTask(
    "STS-B",
    Layout("sentence1", "sentence2", "score"),
    RegressionHead(0.0, 5.0),
    {"pearson": pearson_correlation, "spearman": spearman_correlation},
)
QQP = GlueTask(
    "QQP",
    # A few questions in GLUE's training file hold a line break, which cuts their row in two.
    Layout("question1", "question2", "is_duplicate", index="id", skip_broken_rows=True),
    ClassificationHead({"0": "not_duplicate", "1": "duplicate"}),
    _ACCURACY_AND_F1,
)
MNLI = GlueTask(
    "MNLI",
    Layout("sentence1", "sentence2", "gold_label"),
    ClassificationHead(
        {"contradiction": "contradiction", "entailment": "entailment", "neutral": "neutral"}
    ),
    _ACCURACY,
    evaluation_splits=("dev_matched", "dev_mismatched"),
    test_splits=("test_matched", "test_mismatched"),
    submissions=("MNLI-m.tsv", "MNLI-mm.tsv"),
)
QNLI = GlueTask("QNLI", Layout("question", "sentence", "label"), _ENTAILMENT, _ACCURACY)
RTE = GlueTask("RTE", Layout("sentence1", "sentence2", "label"), _ENTAILMENT, _ACCURACY)
WNLI = GlueTask(
    "WNLI",
    Layout("sentence1", "sentence2", "label"),
    ClassificationHead({"0": "not_entailment", "1": "entailment"}),
    _ACCURACY,
)
# GLUE's diagnostics: sentences written to show what a model of MNLI has learned. The answers to
# diagnostic.tsv are handed in; diagnostic-full.tsv has the labels.
AX = GlueTask(
    "AX",
    Layout("sentence1", "sentence2", "gold_label"),
    MNLI.head_of,
    {"matthews_correlation": matthews_correlation, "accuracy": accuracy},
    evaluation_splits=("diagnostic-full",),
    test_splits=("diagnostic",),
    layouts={"diagnostic-full": Layout("Premise", "Hypothesis", "Label")},
    trained_on="MNLI",
)
GLUE_TASKS = (COLA, SST_2, MRPC, STS_B, QQP, MNLI, QNLI, RTE, WNLI, AX)


_TASKS = {task.name: task for task in GLUE_TASKS}


def task_names() -> tuple[str, ...]:
    """The names that `find_task` knows.

    Example:
        >>> task_names()[:3]
        ('CoLA', 'SST-2', 'MRPC')
    """
    return tuple(_TASKS)


def find_task(name: str) -> GlueTask:
    """Gives the task of a name; case, hyphens and underscores do not matter.

    Raises:
        UserError: there is no such task.

    Example:
        >>> find_task("cola").name, find_task("STSB").name
        ('CoLA', 'STS-B')
    """
    for known, task in _TASKS.items():
        if plain_name(known) == plain_name(name):
            return task
    raise UserError(
        f"`task_name={name}`: there is no such task; choose {', '.join(task_names())} or XNLI."
    )


_LANGUAGE = "language"
_TRAINING = Layout("premise", "hypo", "label")
_ARCHIVES = {"train": "XNLI-MT-1.0", "dev": "XNLI-1.0", "test": "XNLI-1.0"}
# The translated training files call one label by another word than all other files.
_LABELS = {"contradictory": "contradiction"}


@dataclass(frozen=True)
class XnliTask(GlueTask):
    """XNLI in some of its languages; its splits are called `train`, `dev_zh`, `test_zh`.

    The test sets are labelled; they are scored as well where they are there.

    Attributes:
        language: the language of the training set.
    """

    language: str = "en"

    def files(self, split: str) -> list[Path]:
        """The one file of a split: of training, one a language; of the others one for all."""
        part, _, _ = split.partition("_")
        inner = f"multinli/multinli.train.{self.language}.tsv" if part == "train" else ""
        inner = inner or f"xnli.{part}.tsv"
        unpacked = self.data_dir / _ARCHIVES[part] / inner
        return [unpacked if is_there(unpacked) else self.data_dir / inner]

    def examples(self, split: str) -> Iterator[TextExample]:
        """Reads the lines of a split's language; see `Task.examples`."""
        part, _, language = split.partition("_")
        (path,) = self.files(split)
        return self._read_training(path) if part == "train" else self._read(path, language)

    def _read_training(self, path: Path) -> Iterator[TextExample]:
        layout = _TRAINING
        for number, line in enumerate(read_table(path, [*layout.texts, layout.label])):
            texts = [line.values[column] for column in layout.texts]
            label = line.values[layout.label]
            label = _LABELS.get(label, label)
            self.check_label(path, line.line, label)
            yield TextExample(str(number), texts[0], texts[1], label)

    def _read(self, path: Path, language: str) -> Iterator[TextExample]:
        layout, count = self.layout, 0
        for line in read_table(path, [_LANGUAGE, *layout.texts, layout.label]):
            if line.values[_LANGUAGE] != language:
                continue
            texts = [line.values[column] for column in layout.texts]
            label = line.values[layout.label]
            self.check_label(path, line.line, label)
            yield TextExample(str(count), texts[0], texts[1], label)
            count += 1
        if not count:
            raise UserError(
                f"{path}: has no rows whose {_LANGUAGE} is {language!r}; choose from "
                f"{', '.join(LANGUAGES)} with `xnli_eval_languages`."
            )


def xnli_task(data_dir: Path, config: XnliConfig, long_texts: LongTexts | None = None) -> XnliTask:
    """Gives the task for a run.

    Args:
        data_dir: the folder in which XNLI's archives were unpacked.
        config: the languages.
        long_texts: what becomes of texts that are longer than a row.

    Raises:
        UserError: there is no such language.
    """
    unknown = [one for one in config.scored if one not in LANGUAGES]
    if unknown:
        raise UserError(
            f"`xnli_eval_languages={','.join(unknown)}`: XNLI has {', '.join(LANGUAGES)}, or all."
        )
    task = XnliTask(
        "XNLI",
        MNLI.layout,
        MNLI.head_of,
        MNLI.metrics,
        data_dir=Path(data_dir),
        long_texts=long_texts or LongTexts(),
        language=config.xnli_language,
    )
    tests = tuple(f"test_{language}" for language in config.scored)
    scored = [f"dev_{language}" for language in config.scored]
    scored += [split for split in tests if is_there(task.files(split)[0])]
    return replace(
        task,
        evaluation_splits=tuple(scored),
        test_splits=tests,
        submissions=tuple(f"XNLI-{language}.tsv" for language in config.scored),
    )
