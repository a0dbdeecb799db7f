"""The loss of predicting one number."""

from collections.abc import Mapping
from typing import Any

from keras import ops

from keras_bert_impl.training.objective import ExampleObjective, weights_of


class RegressionObjective(ExampleObjective):
    """Mean squared error over the examples; the targets are `label_ids` float32 [batch].

    Example:
        >>> import numpy as np
        >>> objective = RegressionObjective()
        >>> batch = {"label_ids": np.array([1.0, 3.0], np.float32)}
        >>> outputs = {"logits": ops.convert_to_tensor([[1.0], [1.0]])}
        >>> loss, _ = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(loss)
        2.0
    """

    def loss(
        self,
        outputs: Any,
        batch: Mapping[str, Any],
        normalizers: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Gives the part's share of the mean squared error (also as a metric)."""
        predictions = ops.reshape(ops.cast(outputs["logits"], "float32"), [-1])  # [rows]
        targets = ops.reshape(ops.cast(batch["label_ids"], "float32"), [-1])  # [rows]
        weights = weights_of(batch, targets) / normalizers["examples"]
        error = ops.sum(ops.square(predictions - targets) * weights)
        return error, {"mean_squared_error": error}
