"""AdamW's update of one variable as one compiled pass over memory.

Written as single operations the update goes through memory a dozen times; compiled it reads and
writes every number once. Compiled code is shared by all variables of one shape.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_bert_impl.compat import is_plain_variable, own_copy, variable_index
from keras_bert_impl.cpu_kernels.xla_programs import compiled
from keras_bert_impl.layers import kernels
from keras_bert_impl.optimizers.bert_adamw import BertAdamW


def update_step_of(optimizer: Any, chosen: kernels.PlainKernels) -> Callable[[Any, Any, Any], None]:
    """The optimizer's `update_step`, compiled where the fast kernels were chosen.

    Args:
        optimizer: any optimizer with `update_step(gradient, variable, learning_rate)`; only
            `BertAdamW` has a compiled form.
        chosen: the kernels that the model trains with.

    Returns:
        A function with the arguments and the effect of `update_step`.
    """
    if chosen is kernels.PLAIN or type(optimizer) is not BertAdamW:
        return optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = variable_index(optimizer, variable)  # as update_step finds it
        moments = (optimizer.first_moments[index], optimizer.second_moments[index])
        weights = (variable, *(own_copy(moment.value) for moment in moments))
        # What is no plain variable (a TPU's, say) keeps the plain update.
        if not all(map(is_plain_variable, weights)):
            optimizer.update_step(gradient, variable, learning_rate)
            return
        _adamw(
            *weights,
            gradient,
            tf.cast(learning_rate, tf.float32) * optimizer._factors[index],
            tf.constant(optimizer.decay if optimizer._decayed[index] else 0.0, tf.float32),
            optimizer.corrections() if optimizer.bias_correction else None,
            (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon),
        )

    return update_step


@compiled
def _adamw(
    variable: Any,
    first_moment: Any,
    second_moment: Any,
    gradient: Any,
    rate: Any,
    decay: Any,
    corrections: tuple[Any, Any] | None,
    constants: tuple[float, float, float],
) -> None:
    beta_1, beta_2, epsilon = constants
    m = first_moment + (gradient - first_moment) * (1.0 - beta_1)
    v = second_moment + (tf.square(gradient) - second_moment) * (1.0 - beta_2)
    of_m, of_v = (m, v) if corrections is None else (m / corrections[0], v / corrections[1])
    direction = of_m / (tf.sqrt(of_v) + epsilon) + decay * variable
    first_moment.assign(m)
    second_moment.assign(v)
    variable.assign_sub(rate * direction)
