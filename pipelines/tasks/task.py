"""What a fine-tuning task is: it owns its examples, its features, its head and its scorer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:  # only for the types: a task must be listable without loading TensorFlow
    import keras

    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.training.objectives import Objective


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or pair of texts, to classify or to give a number to.

    Attributes:
        identifier: what a submission calls it: the index column, or the row's number from 0.
        text_a: the first (or only) text.
        text_b: the second text, or None.
        label: the label as the task's head understands it, or None in a test set.

    Example:
        >>> Example("0", "It rains.", "The street is wet.", "entailment").label
        'entailment'
    """

    identifier: str
    text_a: str
    text_b: str | None = None
    label: str | None = None


class Task(Protocol):
    """The contract between a task and the job that fine-tunes for it.

    The job reads `examples`, turns them into `features`, trains what `build_model` gives with
    `objective`, hands the model's outputs to `score`, and lets `write_predictions` write them.
    It knows nothing else of the task.
    """

    @property
    def name(self) -> str:
        """What `--task_name` calls it."""
        ...

    @property
    def train_split(self) -> str:
        """The split to train on; a split is named like its file."""
        ...

    @property
    def evaluation_splits(self) -> tuple[str, ...]:
        """The labelled splits that `--do_eval` scores, the main one first."""
        ...

    @property
    def test_splits(self) -> tuple[str, ...]:
        """The splits that `--do_predict` answers, the main one first."""
        ...

    def examples(self, data_dir: Path, split: str) -> list[Example]:
        """Reads a split.

        Raises:
            UserError: a missing or empty file, a malformed line, an unknown label.
        """
        ...

    def features(
        self, examples: Sequence[Example], tokenizer: "Tokenizer", max_seq_length: int
    ) -> dict[str, np.ndarray]:
        """Gives the model's inputs, and `label_ids` where the examples have labels."""
        ...

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Gives the configuration with what a served model should know of the task."""
        ...

    def build_model(self, config: "BertConfig", dtype: Any = None) -> "keras.Model":
        """Builds the encoder with the task's head, to compute in a type or by a Keras policy."""
        ...

    def objective(self) -> "Objective":
        """The loss to train with."""
        ...

    def score(
        self, examples: Sequence[Example], outputs: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        """Gives the official metrics of the model's outputs for labelled examples."""
        ...

    def write_predictions(
        self,
        folder: Path,
        split: str,
        examples: Sequence[Example],
        outputs: Mapping[str, np.ndarray],
    ) -> list[Path]:
        """Writes the answers to a test split; gives the files' paths."""
        ...
