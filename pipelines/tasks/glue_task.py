"""A task in GLUE's form: tab-separated files, one head, official metrics, a submission file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError
from pipelines.tasks.classification_head import ClassificationHead
from pipelines.tasks.predictions import write_submission, write_values
from pipelines.tasks.regression_head import RegressionHead
from pipelines.tasks.task import Example
from pipelines.tasks.text_features import text_features
from pipelines.tasks.tsv import Row, read_table

if TYPE_CHECKING:
    import keras

    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.training.objective import Objective

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
