"""The heads of the tasks: one of a few labels, several of them, or a number."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.checkpoints.task_settings import without_task
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import bounded_loads, json_text
from pipelines.fine_tuning.task import Head
from pipelines.tables.writing import digits

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig


class ClassificationHead:
    """A score for each label over the pooled first token; `class_weights` count in the loss.

    Example:
        >>> head = ClassificationHead({"0": "unacceptable", "1": "acceptable"})
        >>> head.encode("1"), head.names
        (1, ('unacceptable', 'acceptable'))
        >>> head.decode(np.array([[0.1, 2.0], [3.0, -1.0]]))
        ['1', '0']
    """

    def __init__(
        self, labels: Mapping[str, str], class_weights: Sequence[float] | None = None
    ) -> None:
        self._ids = {label: class_id for class_id, label in enumerate(labels)}
        self._class_weights = class_weights
        self.labels = tuple(labels)
        self.names = tuple(labels.values())
        self.settings: dict[str, Any] = {}

    def encode(self, label: str) -> int:
        """Gives the class of a label."""
        if label not in self._ids:
            raise UserError(
                f"unknown label {shown(label)}; it must be one of {some_of(self.labels)}."
            )
        return self._ids[label]

    def encode_all(self, labels: list[str]) -> np.ndarray:
        """Gives the classes of labels: int32 [examples]."""
        return np.array([self.encode(label) for label in labels], np.int32)

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Gives the probabilities of the classes: float64 [examples, labels]."""
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
        return _with_labels(config, "single_label_classification", self.names)

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one logit a label, trained by cross entropy."""
        from keras_bert_impl.models.classifier import BertClassifier
        from keras_bert_impl.training.objectives import ClassificationObjective

        model = BertClassifier(config, num_labels=len(self.labels), dtype=dtype)
        return Head(model, ClassificationObjective(self._class_weights))


class MultiLabelHead:
    """Any number of labels at once; a label of an example is a JSON list of those that hold.

    `positive_weights` are how much each label counts in the loss where it holds.

    Example:
        >>> head = MultiLabelHead(["toxic", "rude"])
        >>> head.encode('["rude"]')
        [0, 1]
        >>> head.decode(np.array([[-0.1, 2.0], [-3.0, -1.0]]))
        ['["rude"]', '[]']
    """

    def __init__(
        self, labels: Sequence[str], positive_weights: Sequence[float] | None = None
    ) -> None:
        self._ids = {label: number for number, label in enumerate(labels)}
        self.labels = self.names = tuple(labels)
        self._positive_weights = positive_weights
        self.settings: dict[str, Any] = {}

    def encode(self, label: str) -> list[int]:
        """Gives a 1 for each label that holds, a 0 for the others."""
        held = bounded_loads(label)
        unknown = [one for one in held if one not in self._ids]
        if unknown:
            raise _unknown(unknown[0], self.labels)
        return [int(name in held) for name in self.labels]

    def encode_all(self, labels: list[str]) -> np.ndarray:
        """Gives which labels hold: int32 [examples, labels]."""
        return np.array([self.encode(label) for label in labels], np.int32)

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Gives the probability of each label: float64 [examples, labels]."""
        # By the hyperbolic tangent, which no large number overflows.
        return 0.5 * (1.0 + np.tanh(0.5 * logits.astype(np.float64)))

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        """Gives a 1 where the probability is a half or more: int64 [examples, labels]."""
        return (logits >= 0).astype(np.int64)

    def decode(self, logits: np.ndarray) -> list[str]:
        """Gives the labels that hold, as JSON lists."""
        names = np.array(self.labels, object)
        return [as_label_list(names[held]) for held in logits >= 0]

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Writes the labels' names into the configuration."""
        # One label alone is a cross-encoder's score.
        activation = "torch.nn.modules.activation.Sigmoid" if len(self.labels) == 1 else None
        return _with_labels(config, "multi_label_classification", self.labels, activation)

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one logit a label, trained by binary cross entropy."""
        from keras_bert_impl.models.classifier import BertClassifier
        from keras_bert_impl.training.objectives import MultiLabelObjective

        model = BertClassifier(config, num_labels=len(self.labels), dtype=dtype)
        return Head(model, MultiLabelObjective(self._positive_weights))


def as_label_list(labels: Iterable[str]) -> str:
    """Writes labels as the JSON list that `MultiLabelHead` reads.

    Example:
        >>> as_label_list(["é", "b"])
        '["é", "b"]'
    """
    return json_text(list(labels), ensure_ascii=False)


class RegressionHead:
    """One number over the pooled first token, learned in `units` (see `LabelUnits`).

    Without bounds answers have nine digits, else three decimals.

    Example:
        >>> head = RegressionHead(0.0, 5.0)
        >>> head.encode("3.800")
        3.8
        >>> head.decode(np.array([[5.25], [1.5]]))
        ['5.000', '1.500']
    """

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        units: tuple[float, float] | None = None,
    ) -> None:
        self._low, self._high, self._units = low, high, units
        self._bounded = math.isfinite(high - low)
        self.settings = {} if units is None else {"label_units": [*units]}

    def encode(self, label: str) -> float:
        """Reads a label."""
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and self._low <= number <= self._high):
            bounds = f"number from {self._low:g} to {self._high:g}"
            kind = bounds if self._bounded else "finite number"
            raise UserError(f"label {shown(label)} is no {kind}; correct it.")
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
        """Gives the numbers in decimals, none outside the labels' range."""
        numbers = np.clip(self.predictions(logits), self._low, self._high)
        return [f"{number:.3f}" if self._bounded else digits(number) for number in numbers]

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Writes into the configuration that the model gives a number."""
        return _with_labels(config, "regression", ("score",), "torch.nn.modules.linear.Identity")

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one output, trained by the mean squared error."""
        from keras_bert_impl.models.classifier import BertClassifier
        from keras_bert_impl.training.objectives import RegressionObjective

        model = BertClassifier(config, num_labels=1, label_units=self._units, dtype=dtype)
        return Head(model, RegressionObjective(1.0 if self._units is None else self._units[1]))


def _with_labels(
    config: "BertConfig", problem_type: str, names: Sequence[str], activation: str | None = None
) -> "BertConfig":
    """The configuration with what `transformers` calls the problem and its labels.

    The activation is the class that sentence-transformers puts behind one logit.
    """
    labels: dict[str, Any] = {
        # Named here, so that the model directory does not take the problem for another model's.
        "architectures": ["BertForSequenceClassification"],
        "problem_type": problem_type,
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    if activation is not None:
        labels["sentence_transformers"] = {"activation_fn": activation}
    return config.replace(extra={**without_task(config).extra, **labels})


def _unknown(label: str, known: Iterable[str]) -> UserError:
    return UserError(f"unknown label {shown(label)}; it must be one of {some_of(known)}.")


def some_of(labels: Iterable[str], most: int = 12) -> str:
    """Labels in words, of many the first ones.

    Example:
        >>> some_of("abcd", 2)
        'a, b and 2 more'
    """
    labels = list(labels)
    first, more = ", ".join(labels[:most]), len(labels) - most
    return f"{first} and {more} more" if more > 0 else first
