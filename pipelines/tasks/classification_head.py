"""The head of a task that chooses one of a few labels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError

if TYPE_CHECKING:
    import keras

    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.training.objective import Objective


class ClassificationHead:
    """A score for each label over the pooled first piece.

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

    def build_model(self, config: "BertConfig", dtype: Any = None) -> "keras.Model":
        """Builds the encoder with one logit a label."""
        from keras_bert_impl.models.classifier import BertClassifier

        return BertClassifier(config, num_labels=len(self.labels), dtype=dtype)

    def objective(self) -> "Objective":
        """Cross entropy."""
        from keras_bert_impl.training.classification_objective import ClassificationObjective

        return ClassificationObjective()
