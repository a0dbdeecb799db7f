"""The heads of the tasks: one of a few labels, or a number."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError
from pipelines.tasks.task import Head

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig


class ClassificationHead:
    """A score for each label over the pooled first token.

    Args:
        labels: what the files call each label, in the order of the classes, to its readable name.

    Example:
        >>> head = ClassificationHead({"0": "unacceptable", "1": "acceptable"})
        >>> head.encode("1"), head.names
        (1, ('unacceptable', 'acceptable'))
        >>> head.decode(np.array([[0.1, 2.0], [3.0, -1.0]]))
        ['1', '0']
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._ids = {label: class_id for class_id, label in enumerate(labels)}
        self.labels = tuple(labels)
        self.names = tuple(labels.values())

    def encode(self, label: str) -> int:
        """Gives the class of a label.

        Raises:
            UserError: it is none of the labels.
        """
        if label not in self._ids:
            known = " or ".join(map(repr, self.labels))
            raise UserError(f"unknown label {label!r}; it must be {known}.")
        return self._ids[label]

    def encode_all(self, labels: list[str]) -> np.ndarray:
        """Gives the classes of labels: int32 [examples]."""
        return np.array([self.encode(label) for label in labels], np.int32)

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Gives the probabilities of the classes: float64 [examples, labels].

        Args:
            logits: float32 [examples, labels].
        """
        logits = logits.astype(np.float64)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        """Gives the most probable class: int64 [examples]."""
        return logits.argmax(axis=-1)

    def decode(self, logits: np.ndarray) -> list[str]:
        """Gives the most probable label, as the files call it."""
        return [self.labels[class_id] for class_id in self.predictions(logits)]

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Writes the labels' names into the configuration."""
        names = {
            "problem_type": "single_label_classification",
            "id2label": {str(i): name for i, name in enumerate(self.names)},
            "label2id": {name: i for i, name in enumerate(self.names)},
        }
        return config.replace(extra={**config.extra, **names})

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one logit a label, trained by cross entropy."""
        from keras_bert_impl.models.classifier import BertClassifier
        from keras_bert_impl.training.objectives import ClassificationObjective

        model = BertClassifier(config, num_labels=len(self.labels), dtype=dtype)
        return Head(model, ClassificationObjective())


class RegressionHead:
    """One number over the pooled first token.

    Args:
        low: the smallest label.
        high: the largest label.

    Example:
        >>> head = RegressionHead(0.0, 5.0)
        >>> head.encode("3.800")
        3.8
        >>> head.decode(np.array([[5.25], [1.5]]))
        ['5.000', '1.500']
    """

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def encode(self, label: str) -> float:
        """Reads a label.

        Raises:
            UserError: it is no number in the range.
        """
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        if not self._low <= number <= self._high:
            raise UserError(
                f"label {label!r} is no number from {self._low:g} to {self._high:g}; correct it."
            )
        return number

    def encode_all(self, labels: list[str]) -> np.ndarray:
        """Reads labels: float32 [examples]."""
        return np.array([self.encode(label) for label in labels], np.float32)

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Gives the numbers as the model has them: float64 [examples, 1]."""
        return logits.astype(np.float64)

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        """Gives the numbers: float64 [examples]."""
        return logits[:, 0].astype(np.float64)

    def decode(self, logits: np.ndarray) -> list[str]:
        """Gives the numbers with three decimals, none outside the labels' range."""
        return [f"{x:.3f}" for x in np.clip(self.predictions(logits), self._low, self._high)]

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Writes into the configuration that the model gives a number."""
        names = {
            "problem_type": "regression",
            "id2label": {"0": "score"},
            "label2id": {"score": 0},
        }
        return config.replace(extra={**config.extra, **names})

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one output, trained by the mean squared error."""
        from keras_bert_impl.models.classifier import BertClassifier
        from keras_bert_impl.training.objectives import RegressionObjective

        return Head(BertClassifier(config, num_labels=1, dtype=dtype), RegressionObjective())
