"""The nine tasks of GLUE, read from the files of GLUE's own archive."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError
from pipelines.metrics.classification import accuracy, f1_score, matthews_correlation
from pipelines.metrics.correlation import pearson_correlation, spearman_correlation
from pipelines.tasks.heads import ClassificationHead, RegressionHead
from pipelines.tasks.tables import Row, read_table, write_submission, write_values
from pipelines.tasks.task import Example, Task
from pipelines.tasks.text_features import text_features

if TYPE_CHECKING:
    import keras

    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.training.objectives import Objective

Metric = Callable[[np.ndarray, np.ndarray], float]


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


@dataclass(frozen=True)
class GlueTask:
    r"""One task of GLUE; see `pipelines.tasks.task.Task` for what its methods promise.

    Attributes:
        name: GLUE's name, e.g. "CoLA".
        layout: where its files have what.
        head: classification or regression.
        metrics: the official metrics by name.
        evaluation_splits: the labelled splits that are scored.
        test_splits: the splits that are answered.
        submissions: GLUE's file name of each test split.
        train_split: the split to train on.

    Example:
        >>> import tempfile
        >>> from pipelines.metrics.classification import accuracy
        >>> head = ClassificationHead({"0": "no", "1": "yes"})
        >>> task = GlueTask("Toy", Layout("text", None, "label"), head, {"accuracy": accuracy})
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "dev.tsv").write_text("text\tlabel\nIt rains.\t1\n")
        >>> examples = task.examples(folder, "dev")
        >>> task.score(examples, {"logits": np.array([[0.1, 0.9]])})
        {'accuracy': 1.0}
    """

    name: str
    layout: Layout
    head: ClassificationHead | RegressionHead
    metrics: Mapping[str, Metric]
    evaluation_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    submissions: tuple[str, ...] = ()
    train_split: str = "train"

    def examples(self, data_dir: Path, split: str) -> list[Example]:
        """Reads `data_dir/split.tsv`; see `Task.examples`."""
        path = Path(data_dir) / f"{split}.tsv"
        if split in self.test_splits:
            return self._read_test(path)
        layout = self.layout
        texts = [layout.text_a] if layout.text_b is None else [layout.text_a, layout.text_b]
        rows = read_table(
            path,
            [*texts, layout.label],
            columns=layout.labelled_columns,
            skip_broken_rows=layout.skip_broken_rows,
        )
        return [self._labelled(path, number, row) for number, row in enumerate(rows)]

    def features(
        self, examples: Sequence[Example], tokenizer: "Tokenizer", max_seq_length: int
    ) -> dict[str, np.ndarray]:
        """Gives the model's inputs; see `Task.features`."""
        features = text_features(examples, tokenizer, max_seq_length)
        labels = [example.label for example in examples if example.label is not None]
        if labels:
            features["label_ids"] = self.head.encode_all(labels)
        return features

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Writes the labels' names into the configuration."""
        return self.head.configure(config)

    def build_model(self, config: "BertConfig", dtype: Any = None) -> "keras.Model":
        """Builds the encoder with the task's head."""
        return self.head.build_model(config, dtype)

    def objective(self) -> "Objective":
        """The loss to train with."""
        return self.head.objective()

    def score(
        self, examples: Sequence[Example], outputs: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        """Gives GLUE's metrics of `outputs["logits"]`; see `Task.score`."""
        labels = self.head.encode_all([str(example.label) for example in examples])
        predictions = self.head.predictions(outputs["logits"])
        return {name: metric(predictions, labels) for name, metric in self.metrics.items()}

    def write_predictions(
        self,
        folder: Path,
        split: str,
        examples: Sequence[Example],
        outputs: Mapping[str, np.ndarray],
    ) -> list[Path]:
        """Writes `test_results.tsv`, as the original does, and GLUE's submission file."""
        place = self.test_splits.index(split)
        # MNLI has two test sets: the first keeps the original's file name.
        results = "test_results.tsv" if place == 0 else f"{split}_results.tsv"
        names = self.submissions or (f"{self.name}.tsv",)
        logits = outputs["logits"]
        return [
            write_values(folder / results, self.head.values(logits)),
            write_submission(
                folder / names[place],
                [example.identifier for example in examples],
                self.head.decode(logits),
            ),
        ]

    def _read_test(self, path: Path) -> list[Example]:
        layout = self.layout
        needed = [layout.text_a] if layout.text_b is None else [layout.text_a, layout.text_b]
        # No row of a test set may be left out: the submission would lack its answer.
        rows = read_table(path, needed)
        return [
            Example(
                row.values.get(layout.index, str(number)),
                row.values[layout.text_a],
                row.values[layout.text_b] if layout.text_b else None,
            )
            for number, row in enumerate(rows)
        ]

    def _labelled(self, path: Path, number: int, row: Row) -> Example:
        layout, label = self.layout, row.values[self.layout.label]
        try:
            self.head.encode(label)
        except UserError as error:
            raise UserError(f"{path}: line {row.line}: {error}") from error
        text_b = row.values[layout.text_b] if layout.text_b else None
        return Example(str(number), row.values[layout.text_a], text_b, label)


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
GLUE_TASKS = (COLA, SST_2, MRPC, STS_B, QQP, MNLI, QNLI, RTE, WNLI)


_TASKS: dict[str, Task] = {task.name: task for task in GLUE_TASKS}


def task_names() -> tuple[str, ...]:
    """The names that `find_task` knows.

    Example:
        >>> task_names()[:3]
        ('CoLA', 'SST-2', 'MRPC')
    """
    return tuple(_TASKS)


def find_task(name: str) -> Task:
    """Gives the task of a name; case, hyphens and underscores do not matter.

    Raises:
        UserError: there is no such task.

    Example:
        >>> find_task("cola").name, find_task("STSB").name
        ('CoLA', 'STS-B')
    """
    for known, task in _TASKS.items():
        if _plain(known) == _plain(name):
            return task
    raise UserError(f"--task_name={name}: there is no such task; choose {', '.join(task_names())}.")


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
