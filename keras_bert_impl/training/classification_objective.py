"""The loss of choosing one of a few classes."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from keras_bert_impl.training.objective import ExampleObjective, weights_of


class ClassificationObjective(ExampleObjective):
    """Mean cross entropy over the examples; labels are `label_ids` int32 [batch].

    Example:
        >>> import numpy as np
        >>> objective = ClassificationObjective()
        >>> batch = {"label_ids": np.array([1, 0])}
        >>> outputs = {"logits": ops.convert_to_tensor([[0.0, 9.0], [0.0, 9.0]])}
        >>> _, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(metrics["accuracy"])
        0.5
    """

    def loss(
        self,
        outputs: Any,
        batch: Mapping[str, Any],
        normalizers: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Gives the part's share of the loss and of the accuracy."""
        logits = ops.cast(outputs["logits"], "float32")  # [rows, classes]
        labels = ops.reshape(ops.cast(batch["label_ids"], "int32"), [-1])  # [rows]
        weights = weights_of(batch, labels) / normalizers["examples"]
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)
        accuracy = ops.sum(ops.cast(right, "float32") * weights)
        return ops.sum(losses * weights), {"accuracy": accuracy}
