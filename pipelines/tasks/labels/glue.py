"""The tasks of GLUE, XNLI in each of its languages, and the archive that GLUE's server takes."""

import logging
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import check_output, is_there, open_whole
from keras_bert_impl.options import REQUIRED, option
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning.heads import ClassificationHead, LabelHead, RegressionHead
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics import classification
from pipelines.tables.files import Record, read_table
from pipelines.tables.lines import read_lines
from pipelines.tables.writing import write_submission, write_values
from pipelines.tasks.labels.rows import Labelled, LabelTask

_LOGGER = logging.getLogger(__name__)

Metric = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Layout:
    """Where a task's files have what."""

    text_a: str
    text_b: str | None
    label: str
    index: str = "index"  # numbers a test set; where it is missing, the rows are counted
    labelled_columns: tuple[str, ...] | None = None  # of labelled files without a header
    skip_broken_rows: bool = False  # GLUE's own file has rows that cannot be read
    only: tuple[str, str] | None = None  # a column, and its value in the rows that are taken
    spellings: Mapping[str, str] = field(default_factory=dict)  # of labels, where they differ

    @property
    def texts(self) -> list[str]:
        return [self.text_a] if self.text_b is None else [self.text_a, self.text_b]


@dataclass(frozen=True)
class GlueTask(LabelTask):
    """One task of GLUE; see `Task`."""

    name: str
    layout: Layout
    head_of: LabelHead
    metrics: Mapping[str, Metric]
    evaluation_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    submissions: tuple[str, ...] = ()  # GLUE's file names of the test splits
    train_split: str = "train"
    data_dir: Path = Path()
    long_texts: LongTexts = field(default_factory=LongTexts)
    layouts: Mapping[str, Layout] = field(default_factory=dict)  # of splits that have another
    trained_on: str | None = None  # the task whose model answers one without a training set
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)  # where not `split.tsv`

    def at(self, data_dir: Path, long_texts: LongTexts | None = None) -> "GlueTask":
        """The same task with its files in a folder, and long texts treated in a way."""
        return replace(self, data_dir=Path(data_dir), long_texts=long_texts or self.long_texts)

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.long_texts.settings, **self.head_of.settings}

    @property
    def num_texts(self) -> int:
        return len(self.layout.texts)

    def files(self, split: str) -> list[Path]:
        if split == self.train_split and self.trained_on:
            raise UserError(
                f"`do_train=True`: {self.name} has no training set; train on {self.trained_on} and "
                "name its model with `init_checkpoint`."
            )
        places = [self.data_dir / name for name in self.paths.get(split, (f"{split}.tsv",))]
        return [next(filter(is_there, places), places[-1])]

    def examples(self, split: str) -> Iterator[TextExample]:
        (path,) = self.files(split)
        layout = self.layouts.get(split, self.layout)
        labelled = split in (self.train_split, *self.evaluation_splits)
        column, value = layout.only or ("", None)
        # No row of a test set may be left out: the submission would lack its answer.
        lines = read_table(
            path,
            [*layout.texts, *([layout.label] if labelled else ()), *([column] if value else ())],
            columns=layout.labelled_columns if labelled else None,
            skip_broken_rows=labelled and layout.skip_broken_rows,
        )
        taken = (line for line in lines if value is None or line.values[column] == value)
        count = 0
        for count, line in enumerate(taken, start=1):
            place = str(count - 1)
            identifier = place if labelled else line.values.get(layout.index, place)
            label = self._label(path, line, layout) if labelled else None
            text_b = None if layout.text_b is None else line.values[layout.text_b]
            yield TextExample(identifier, line.values[layout.text_a], text_b, label, "", line.line)
        if value and not count:
            raise UserError(f"{path}: has no rows whose {column} is {value!r}; name another task.")

    def _label(self, path: Path, line: Record, layout: Layout) -> str:
        label = layout.spellings.get(line.values[layout.label], line.values[layout.label])
        try:
            self.head_of.encode(label)
        except UserError as error:
            raise UserError(f"{path}: line {line.line}: {error}") from error
        return label

    def score(self, answered: Labelled) -> dict[str, float]:
        pairs = [(answer.prediction, str(example.label)) for example, answer in answered]
        predictions = np.array([prediction for prediction, _ in pairs])
        labels = self.head_of.encode_all([label for _, label in pairs])
        return {name: metric(predictions, labels) for name, metric in self.metrics.items()}

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


_ACCURACY: Mapping[str, Metric] = {"accuracy": classification.accuracy}
_ACCURACY_AND_F1: Mapping[str, Metric] = {**_ACCURACY, "f1": classification.f1_score}
_MATTHEWS: Mapping[str, Metric] = {"matthews_correlation": classification.matthews_correlation}
_ENTAILMENT = ClassificationHead({one: one for one in ("entailment", "not_entailment")})
_SENTENCES = Layout("sentence1", "sentence2", "label")


def _binary(no: str, yes: str) -> ClassificationHead:
    return ClassificationHead({"0": no, "1": yes})


COLA = GlueTask(
    "CoLA",
    Layout(
        "sentence", None, "label", labelled_columns=("source", "label", "original_mark", "sentence")
    ),
    _binary("unacceptable", "acceptable"),
    {**_MATTHEWS, **_ACCURACY},
)
SST_2 = GlueTask(
    "SST-2", Layout("sentence", None, "label"), _binary("negative", "positive"), _ACCURACY
)
MRPC = GlueTask(
    "MRPC",
    Layout("#1 String", "#2 String", "Quality"),
    _binary("not_equivalent", "equivalent"),
    _ACCURACY_AND_F1,
)
STS_B = GlueTask(
    "STS-B",
    Layout("sentence1", "sentence2", "score"),
    RegressionHead(0.0, 5.0),
    {
        "pearson": classification.pearson_correlation,
        "spearman": classification.spearman_correlation,
    },
)
QQP = GlueTask(
    "QQP",
    # A few questions in GLUE's training file hold a line break, which cuts their row in two.
    Layout("question1", "question2", "is_duplicate", index="id", skip_broken_rows=True),
    _binary("not_duplicate", "duplicate"),
    _ACCURACY_AND_F1,
)
MNLI = GlueTask(
    "MNLI",
    Layout("sentence1", "sentence2", "gold_label"),
    ClassificationHead({one: one for one in ("contradiction", "entailment", "neutral")}),
    _ACCURACY,
    evaluation_splits=("dev_matched", "dev_mismatched"),
    test_splits=("test_matched", "test_mismatched"),
    submissions=("MNLI-m.tsv", "MNLI-mm.tsv"),
)
QNLI = GlueTask("QNLI", Layout("question", "sentence", "label"), _ENTAILMENT, _ACCURACY)
RTE = GlueTask("RTE", _SENTENCES, _ENTAILMENT, _ACCURACY)
WNLI = GlueTask("WNLI", _SENTENCES, _binary("not_entailment", "entailment"), _ACCURACY)
# GLUE's diagnostics: sentences written to show what a model of MNLI has learned. The answers to
# diagnostic.tsv are handed in; diagnostic-full.tsv has the labels.
AX = GlueTask(
    "AX",
    Layout("sentence1", "sentence2", "gold_label"),
    MNLI.head_of,
    {**_MATTHEWS, **_ACCURACY},
    evaluation_splits=("diagnostic-full",),
    test_splits=("diagnostic",),
    layouts={"diagnostic-full": Layout("Premise", "Hypothesis", "Label")},
    trained_on="MNLI",
)
GLUE_TASKS = (COLA, SST_2, MRPC, STS_B, QQP, MNLI, QNLI, RTE, WNLI, AX)


def _xnli(language: str) -> GlueTask:
    """MNLI's task in a language, with MNLI's training set in translation.

    `XNLI-1.0.zip` has all languages of dev and test in one file, both labelled;
    `XNLI-MT-1.0.zip` has a training set for each. Without the archives' own folders they lie as
    google-research/bert has them.
    """
    training = Layout("premise", "hypo", "label", spellings={"contradictory": "contradiction"})
    names = {"train": f"XNLI-MT-1.0/multinli/multinli.train.{language}.tsv"}
    names |= {split: f"XNLI-1.0/xnli.{split}.tsv" for split in ("dev", "test")}
    return replace(
        MNLI,
        name=f"XNLI-{language}",
        layout=replace(MNLI.layout, only=("language", language)),
        layouts={"train": training},
        evaluation_splits=("dev", "test"),
        test_splits=("test",),
        submissions=(),
        paths={split: (name, name.partition("/")[2]) for split, name in names.items()},
    )


LANGUAGES = (
    *("ar", "bg", "de", "el", "en", "es", "fr", "hi"),
    *("ru", "sw", "th", "tr", "ur", "vi", "zh"),
)
"""Those of XNLI."""

_TASKS = {task.name: task for task in (*GLUE_TASKS, *map(_xnli, LANGUAGES))}
_TASKS["XNLI"] = _TASKS["XNLI-zh"]  # as in google-research/bert


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def find_task(name: str) -> GlueTask:
    """The task of a name; case, hyphens and underscores do not matter."""
    by_plain_name = {_plain(known): task for known, task in _TASKS.items()}
    if _plain(name) in by_plain_name:
        return by_plain_name[_plain(name)]
    raise UserError(f"`task_name={name}`: there is no such task; choose {', '.join(_TASKS)}.")


_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same answers make the same archive

ROWS: Mapping[str, int] = {
    "AX": 1104,
    "CoLA": 1063,
    "MNLI-m": 9796,
    "MNLI-mm": 9847,
    "MRPC": 1725,
    "QNLI": 5463,
    "QQP": 390965,
    "RTE": 3000,
    "SST-2": 1821,
    "STS-B": 1379,
    "WNLI": 146,
}
"""The test sets of a submission, and their rows."""


@dataclass(frozen=True, kw_only=True)
class SubmissionConfig:
    """The parts of an archive."""

    run_dir: tuple[str, ...] = option(
        REQUIRED,
        "Folders with files of answers (CoLA.tsv, MNLI-m.tsv, ...): output folders of "
        "run_classifier with do_predict, or a folder of such folders; separated by commas.",
    )
    output_file: Path = option(REQUIRED, "The archive to write, e.g. submission.zip.")


def write_submission_archive(config: SubmissionConfig) -> dict[str, Path]:
    """Checks the answers to GLUE's test sets and writes the archive; gives the files found."""
    found: dict[str, Path] = {}
    for folder in map(Path, config.run_dir):
        for path in sorted((*folder.glob("*.tsv"), *folder.glob("*/*.tsv"))):
            other = found.setdefault(path.stem, path) if path.stem in ROWS else path
            if not other.samefile(path):
                raise UserError(f"{path}: {other} is of the same test set; name one in `run_dir`.")
    if not found:
        raise UserError(
            f"`run_dir={','.join(config.run_dir)}`: holds none of {'.tsv, '.join(ROWS)}.tsv; run "
            "the tasks with `do_predict` first."
        )
    with (
        open_whole(check_output(config.output_file), "wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in sorted(found):
            _check(name, found[name])
            entry = zipfile.ZipInfo(f"{name}.tsv", _EARLIEST)
            entry.external_attr = 0o644 << 16  # readable where it is unpacked
            archive.writestr(entry, found[name].read_bytes(), zipfile.ZIP_DEFLATED)
    return found


def _check(name: str, path: Path) -> None:
    """Holds a file against its task: its indices and labels, and how many rows it has."""
    head, number = find_task(name.removesuffix("-mm").removesuffix("-m")).head_of, 1
    indices = set[int]()
    for number, line in read_lines(path):
        try:
            index, label = line.split("\t")
            if number > 1:
                head.encode(label)
                indices.add(int(index))
            if len(indices) < number - 1 or (number == 1 and line != "index\tprediction"):
                raise ValueError
        except (ValueError, UserError) as error:
            raise UserError(
                f"{path}: line {number} is {shown(line)}, no answer here; give the number of each "
                "example once, with its label."
            ) from error
    if number - 1 != ROWS[name]:
        _LOGGER.warning("%s: has %d answers, not %d, GLUE's.", path, number - 1, ROWS[name])
