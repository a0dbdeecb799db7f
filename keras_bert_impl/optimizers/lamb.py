"""LAMB: AdamW whose step is scaled by the size of each weight, for very large batches."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.compat import variable_index
from keras_bert_impl.optimizers.bert_adamw import BertAdamW


@keras.saving.register_keras_serializable("keras_bert_impl")
class Lamb(BertAdamW):
    """AdamW with a trust ratio: `w = w - r (|w| / |u|) u`, u being AdamW's direction.

    Biases and LayerNorm, which are not decayed, have trust ratio 1. Arguments as `BertAdamW`; the
    published LAMB corrects the bias of the moments (`bias_correction=True`).

    Example:
        >>> weight = keras.Variable([3.0, 4.0], name="kernel")
        >>> optimizer = Lamb(learning_rate=0.1, weight_decay=0.0, bias_correction=True)
        >>> optimizer.apply([ops.convert_to_tensor([1.0, 0.0])], [weight])
        >>> [round(float(number), 3) for number in weight.numpy()]  # |w| = 5, u = [1, 0]
        [2.5, 4.0]
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-3,
        name: str = "lamb",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its moments."""
        index = variable_index(self, variable)
        direction = self.direction(index, ops.cast(gradient, variable.dtype))
        rate = ops.cast(learning_rate, variable.dtype) * self._factors[index]
        if self._decayed[index]:
            direction = direction + self.decay * variable
            rate = rate * _trust_ratio(variable, direction)
        self.assign_sub(variable, rate * direction)


def _trust_ratio(weight: Any, direction: Any) -> Any:
    """|w| / |u|, or 1 where either is 0."""
    weight_norm = ops.norm(ops.reshape(ops.convert_to_tensor(weight), [-1]))
    direction_norm = ops.norm(ops.reshape(direction, [-1]))
    usable = ops.logical_and(weight_norm > 0, direction_norm > 0)
    # The safe divisor keeps 0 / 0 out of the branch that is not taken.
    return ops.where(usable, weight_norm / ops.where(usable, direction_norm, 1.0), 1.0)
