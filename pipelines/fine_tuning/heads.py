"""The heads of the tasks of texts: one of a few labels, several of them, or a number."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.task_settings import with_labels, without_task
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import bounded_loads, json_text
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning.task import Head, TaskDefaults
from pipelines.fine_tuning.text_rows import TextExample, join_windows, text_rows
from pipelines.records.rows import Rows
from pipelines.tables.writing import digits

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer
    from keras_bert_impl.training.objectives import Objective


class LabelHead(ABC):
    """How labels become numbers, logits become labels, and which model has the logits."""

    PROBLEM: ClassVar[str]
    DTYPE: ClassVar[type[np.generic]] = np.int32
    names: Sequence[str]  # of the labels, in the model's configuration
    units: tuple[float, float] | None = None  # of numbers
    activation: str | None = None  # the class that sentence-transformers puts behind one logit

    @property
    def settings(self) -> dict[str, Any]:
        """What the model's directory keeps of it."""
        return {} if self.units is None else {"label_units": [*self.units]}

    @abstractmethod
    def encode(self, label: str) -> Any:
        """Gives the class of a label, a 1 for each label that holds, or the number."""

    def encode_all(self, labels: list[str]) -> np.ndarray:
        """Gives those of many: int32 [examples], int32 [examples, labels] or float32 [examples]."""
        return np.array([self.encode(label) for label in labels], self.DTYPE)

    @abstractmethod
    def values(self, logits: np.ndarray) -> np.ndarray:
        """Gives the probabilities of the labels, or the numbers: float64 [examples, labels]."""

    @abstractmethod
    def predictions(self, logits: np.ndarray) -> np.ndarray:
        """Gives what `encode_all` would of the best labels; numbers are float64."""

    @abstractmethod
    def decode(self, logits: np.ndarray) -> list[str]:
        """Gives the best labels, as the files call them."""

    @abstractmethod
    def objective(self) -> "Objective":
        """What the logits are trained for."""

    def configure(self, config: "BertConfig") -> "BertConfig":
        """The configuration with what `transformers` calls the problem and its labels."""
        # Named here, so that the model directory does not take the problem for another model's.
        problem: dict[str, Any] = {
            "architectures": ["BertForSequenceClassification"],
            "problem_type": self.PROBLEM,
        }
        if self.activation is not None:
            problem["sentence_transformers"] = {"activation_fn": self.activation}
        return with_labels(without_task(config), self.names, **problem)

    def build(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the encoder with one logit a label."""
        from keras_bert_impl.models.classifier import BertClassifier

        model = BertClassifier(config, len(self.names), label_units=self.units, dtype=dtype)
        return Head(model, self.objective())


class ClassificationHead(LabelHead):
    """A score for each label over the pooled first token; `class_weights` count in the loss.

    `labels` are the names by what files call them.
    """

    PROBLEM = "single_label_classification"

    def __init__(
        self, labels: Mapping[str, str], class_weights: Sequence[float] | None = None
    ) -> None:
        self._ids = {label: class_id for class_id, label in enumerate(labels)}
        self._class_weights = class_weights
        self.labels, self.names = tuple(labels), tuple(labels.values())

    def encode(self, label: str) -> int:
        if label not in self._ids:
            raise _unknown(label, self.labels)
        return self._ids[label]

    def values(self, logits: np.ndarray) -> np.ndarray:
        logits = logits.astype(np.float64)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        return logits.argmax(axis=-1)

    def decode(self, logits: np.ndarray) -> list[str]:
        return [self.labels[class_id] for class_id in self.predictions(logits)]

    def objective(self) -> "Objective":
        from keras_bert_impl.training.objectives import ClassificationObjective

        return ClassificationObjective(self._class_weights)


class MultiLabelHead(LabelHead):
    """Any number of labels at once; a label of an example is a JSON list of those that hold.

    `positive_weights` are how much each label counts in the loss where it holds.

    Example:
        >>> head = MultiLabelHead(["toxic", "rude"])
        >>> head.encode('["rude"]')
        [0, 1]
        >>> head.decode(np.array([[-0.1, 2.0], [-3.0, -1.0]]))
        ['["rude"]', '[]']
    """

    PROBLEM = "multi_label_classification"

    def __init__(
        self, labels: Sequence[str], positive_weights: Sequence[float] | None = None
    ) -> None:
        self.labels = self.names = tuple(labels)
        self._positive_weights = positive_weights
        if len(labels) == 1:  # a cross-encoder's score
            self.activation = "torch.nn.modules.activation.Sigmoid"

    def encode(self, label: str) -> list[int]:
        held = bounded_loads(label)
        unknown = [one for one in held if one not in self.labels]
        if unknown:
            raise _unknown(unknown[0], self.labels)
        return [int(name in held) for name in self.labels]

    def values(self, logits: np.ndarray) -> np.ndarray:
        # By the hyperbolic tangent, which no large number overflows.
        return 0.5 * (1.0 + np.tanh(0.5 * logits.astype(np.float64)))

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        return (logits >= 0).astype(np.int64)

    def decode(self, logits: np.ndarray) -> list[str]:
        names = np.array(self.labels, object)
        return [as_label_list(names[held]) for held in logits >= 0]

    def objective(self) -> "Objective":
        from keras_bert_impl.training.objectives import MultiLabelObjective

        return MultiLabelObjective(self._positive_weights)


def as_label_list(labels: Iterable[str]) -> str:
    """Writes labels as the JSON list that `MultiLabelHead` reads."""
    return json_text(list(labels), ensure_ascii=False)


class RegressionHead(LabelHead):
    """One number over the pooled first token, learned in `units` (see `LabelUnits`).

    Without bounds answers have nine digits, else three decimals.
    """

    PROBLEM, DTYPE = "regression", np.float32
    names = ("score",)
    activation = "torch.nn.modules.linear.Identity"

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        units: tuple[float, float] | None = None,
    ) -> None:
        self._low, self._high, self.units = low, high, units
        self._bounded = math.isfinite(high - low)

    def encode(self, label: str) -> float:
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and self._low <= number <= self._high):
            bounds = f"number from {self._low:g} to {self._high:g}"
            kind = bounds if self._bounded else "finite number"
            raise UserError(f"label {shown(label)} is no {kind}; correct it.")
        return number

    def values(self, logits: np.ndarray) -> np.ndarray:
        return logits.astype(np.float64)

    def predictions(self, logits: np.ndarray) -> np.ndarray:
        return logits[:, 0].astype(np.float64)

    def decode(self, logits: np.ndarray) -> list[str]:
        numbers = np.clip(self.predictions(logits), self._low, self._high)
        return [f"{number:.3f}" if self._bounded else digits(number) for number in numbers]

    def objective(self) -> "Objective":
        from keras_bert_impl.training.objectives import RegressionObjective

        return RegressionObjective(1.0 if self.units is None else self.units[1])


class TextTask(TaskDefaults):
    """Base of the tasks whose examples are texts and pairs, which a head answers; see `Task`."""

    head_of: LabelHead
    long_texts: LongTexts = LongTexts()
    joins = True

    def texts(self, example: TextExample) -> list[str]:
        return [example.text_a] if example.text_b is None else [example.text_a, example.text_b]

    def rows(
        self, examples: Sequence[TextExample], tokenizer: "LineTokenizer", max_seq_length: int
    ) -> Rows:
        rows = text_rows(examples, tokenizer, max_seq_length, self.long_texts)
        labels = [example.label for example in examples if example.label is not None]
        values = {"label_ids": self.head_of.encode_all(labels)[rows.examples]} if labels else {}
        return replace(rows, values={**rows.values, **values})

    def configure(self, config: "BertConfig") -> "BertConfig":
        return self.head_of.configure(config)

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        return self.head_of.build(config, dtype)

    def joined(self, rows: Rows, outputs: Mapping[str, NDArray]) -> Mapping[str, NDArray]:
        how = self.long_texts.window_answers
        return {"logits": join_windows(rows, outputs["logits"], how)}

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        from keras_bert_impl.serving.export import serve_model

        return serve_model(opened, max_seq_length=max_seq_length)


def _unknown(label: str, known: Iterable[str]) -> UserError:
    return UserError(f"unknown label {shown(label)}; it must be one of {some_of(known)}.")


def some_of(labels: Iterable[str], most: int = 12) -> str:
    """Labels in words, of many the first ones: "a, b and 2 more"."""
    labels = list(labels)
    first, more = ", ".join(labels[:most]), len(labels) - most
    return f"{first} and {more} more" if more > 0 else first
