"""BERT's AdamW and LAMB: decoupled weight decay, and what it does to which weight."""

import math
import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_impl.backend import dense_gradient
from keras_bert_impl.compat import variable_index
from keras_bert_impl.errors import UserError

# The names of our weights and of google's: "layer_norm/gamma", "LayerNorm/beta", "output_bias".
_NOT_DECAYED = re.compile(r"layer_?norm|bias|(^|/)(gamma|beta)$", re.IGNORECASE)
_LAYER_NUMBER = re.compile(r"(?:^|/)(?:encoder_)?(?:layer|block)_(\d+)(?:/|$)")
_EMBEDDINGS = re.compile(r"(?:^|/)embeddings?(?:/|_|$)")


@keras.saving.register_keras_serializable("keras_bert_impl")
class BertAdamW(keras.optimizers.Optimizer):
    """Adam without bias correction, with decoupled weight decay.

    For gradient g, weight w and rate r:
    `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g²`, `w = w - r (m / (sqrt(v) + eps) + decay w)`.
    Biases and LayerNorm are not decayed. In `fit`, clip as BERT does with `global_clipnorm=1.0`,
    which measures the summed gradient of every weight, the token table's too; under a distribution
    strategy Keras clips each replica's own gradients. Our own training step clips the gradients
    summed over all replicas, and gives the rate of each step itself.

    Args:
        learning_rate: the rate, or a schedule such as `WarmupSchedule`, for `fit`.
        weight_decay: the decay, multiplied with the learning rate.
        beta_1: b1.
        beta_2: b2.
        epsilon: eps, added outside the root.
        bias_correction: correct m and v for their start at 0, as Adam's paper does.
        layer_decay: factor on the rate from one layer to the one below; see `layer_factors`.
        name: the optimizer's name.

    Example:
        >>> weight = keras.Variable([1.0], name="kernel")
        >>> optimizer = BertAdamW(learning_rate=0.1, weight_decay=0.0)
        >>> optimizer.apply([ops.convert_to_tensor([2.0])], [weight])
        >>> round(float(weight.numpy()[0]), 4)  # 1 - 0.1 * 0.2 / sqrt(0.004)
        0.6838
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-4,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        layer_decay: float = 1.0,
        name: str = "bert_adamw",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.decay = weight_decay
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.bias_correction, self.layer_decay = bias_correction, layer_decay

    def build(self, variables: Sequence[Any]) -> None:
        """Makes both moments of every variable and settles which are decayed."""
        if self.built:
            return
        super().build(variables)
        paths = [variable.path for variable in variables]
        self._decayed = [is_decayed(path) for path in paths]
        self._factors = layer_factors(paths, self.layer_decay)
        self.first_moments, self.second_moments = (
            [self.add_variable_from_reference(variable, name=name) for variable in variables]
            for name in ("adam_m", "adam_v")
        )

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> None:
        """Refuses: what is decayed is fixed, as in the original."""
        del var_list, var_names
        fault = f"{type(self).__name__} decays all but biases and LayerNorm"
        raise UserError(f"{fault}; take keras.optimizers.AdamW, or weight_decay=0.")

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        """Clips and applies gradients, those of tables with their rows added up before."""
        # Before Keras clips: a table's norm is that of the sums, not of its single rows.
        super().apply([dense_gradient(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its moments."""
        index = variable_index(self, variable)
        direction = self.direction(index, ops.cast(gradient, variable.dtype))
        if self.decay and self._decayed[index]:
            direction = direction + self.decay * variable
        rate = ops.cast(learning_rate, variable.dtype) * self._factors[index]
        self.assign_sub(variable, rate * direction)

    def direction(self, index: int, gradient: Any) -> Any:
        """Moves both moments of variable number `index` and gives m / (sqrt(v) + eps)."""
        m, v = self.first_moments[index], self.second_moments[index]
        # Written as m + (g - m)(1 - b1): one pass less over memory than b1 m + (1 - b1) g.
        self.assign_add(m, (gradient - m) * (1.0 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1.0 - self.beta_2))
        if not self.bias_correction:
            return m / (ops.sqrt(v) + self.epsilon)
        of_m, of_v = self.corrections(gradient.dtype)
        return (m / of_m) / (ops.sqrt(v / of_v) + self.epsilon)

    def corrections(self, dtype: Any = "float32") -> tuple[Any, ...]:
        """The divisors of m and v in the step that is being taken: 1 - b1^t and 1 - b2^t."""
        count = ops.cast(self.iterations + 1, dtype)
        # -expm1(t log b) is 1 - b^t without losing the digits of a b near 1.
        logs = (math.log(beta) if beta else -math.inf for beta in (self.beta_1, self.beta_2))
        return tuple(-ops.expm1(count * log) for log in logs)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this optimizer again."""
        names = ("beta_1", "beta_2", "epsilon", "bias_correction", "layer_decay")
        own = {name: getattr(self, name) for name in names}
        # Keras' own weight decay is another mechanism: it stays off.
        return {**super().get_config(), "weight_decay": self.decay, **own}


def is_decayed(path: str) -> bool:
    """Says whether the variable of this path is decayed: not biases, not LayerNorm.

    Example:
        >>> is_decayed("encoder/layer_0/attention/query/kernel")
        True
        >>> is_decayed("encoder/layer_0/attention/query/bias")
        False
        >>> is_decayed("encoder/embeddings/layer_norm/gamma")
        False
    """
    return _NOT_DECAYED.search(path) is None


def layer_factors(paths: Sequence[str], layer_decay: float) -> list[float]:
    """Gives each variable's factor on the learning rate.

    The head has factor 1, the last encoder layer `layer_decay`, the one below its square, and so
    on down to the embeddings.

    Example:
        >>> layer_factors(["embeddings/word", "layer_0/kernel", "layer_1/kernel", "head"], 0.5)
        [0.125, 0.25, 0.5, 1.0]
    """
    numbers = [_layer_number(path) for path in paths]
    top = max((number for number in numbers if number is not None), default=-1) + 1
    return [1.0 if number is None else layer_decay ** (top - number) for number in numbers]


def _layer_number(path: str) -> int | None:
    """The encoder layer a variable belongs to, -1 for the embeddings, None for what is above."""
    if layer := _LAYER_NUMBER.search(path):
        return int(layer[1])
    return -1 if _EMBEDDINGS.search(path) else None


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
        # The decay is a part of the direction before its norm is taken, as in LAMB's paper.
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
