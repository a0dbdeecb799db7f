"""The parts of all other layers: dense, LayerNorm, and the base class of those with a config."""

from typing import Any, Self

import keras

from keras_bert_impl.backend import JAX, need_tensorflow
from keras_bert_impl.compat import built_layer_grows
from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import Dropout

need_tensorflow("a model", JAX)


class SavedLayer(keras.layers.Layer):
    """A layer that is saved with the arguments, held by attributes of their names, in `saves`."""

    saves: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in self.saves}}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dense(SavedLayer):
    """`activation(inputs @ kernel + bias)`, one of `ACTIVATIONS`, with a truncated-normal kernel.

    Example:
        >>> import numpy as np
        >>> Dense(3)(np.zeros([2, 5], "float32")).shape[1]
        3
    """

    saves = ("units", "activation", "initializer_range")

    def __init__(
        self, units: int, activation: str = "linear", initializer_range: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.activation = units, activation
        self.initializer_range = initializer_range
        self.adapter_scale: float | None = None

    def build(self, input_shape: Any) -> None:
        """Makes kernel [in, units] and bias [units]."""
        start, shape = truncated_normal(self.initializer_range), (input_shape[-1], self.units)
        self.kernel = self.add_weight(shape=shape, initializer=start, name="kernel")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, inputs: Any) -> Any:
        """Maps [..., in] to [..., units]."""
        return kernels.current().dense(inputs, *self.parts(), self.activation)

    def parts(self) -> kernels.Dense:
        """Kernel and bias, for a kernel that multiplies as a part of more."""
        if self.adapter_scale is None:
            return self.kernel, self.bias
        changed = kernels.LowRank(self.kernel, self.lora_a, self.lora_b, self.adapter_scale)
        return changed, self.bias

    def add_adapter(self, rank: int, scale: float) -> None:
        """Adds `scale * lora_a @ lora_b` to the kernel: 0 at first, of the rank at most."""
        width, units = self.kernel.shape
        bound = width**-0.5  # as in PEFT
        start = keras.initializers.RandomUniform(-bound, bound)
        with built_layer_grows(self):
            self.lora_a = self.add_weight(shape=(width, rank), initializer=start, name="lora_a")
            self.lora_b = self.add_weight(shape=(rank, units), initializer="zeros", name="lora_b")
        self.adapter_scale = scale


def truncated_normal(deviation: float) -> keras.initializers.Initializer:
    """The initializer of every BERT matrix: normal, cut at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=deviation)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LayerNorm(SavedLayer):
    """Normalizes the last axis to mean 0 and variance 1, then scales by gamma and shifts by beta.

    Mean, variance and the result's last step are computed in float32, whatever the compute type.
    `epsilon` is added to the variance before its root is taken.

    Example:
        >>> import numpy as np
        >>> np.array(LayerNorm(1e-12)(np.array([[1.0, 3.0]], "float32"))).tolist()
        [[-1.0, 1.0]]
    """

    saves = ("epsilon",)

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Makes gamma [width] and beta [width]."""
        shape = (input_shape[-1],)
        # Without autocast, which would round both to bfloat16 before a kernel sees them.
        self.gamma = self.add_weight(shape=shape, initializer="ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape=shape, initializer="zeros", name="beta", autocast=False)

    def call(self, inputs: Any) -> Any:
        """Normalizes [..., width]; the result has the layer's compute type."""
        return kernels.current().layer_norm(inputs, *self.parts(), self.compute_dtype)

    def parts(self) -> kernels.Norm:
        """Gamma, beta and epsilon, for a kernel that normalizes as a part of more."""
        return self.gamma, self.beta, self.epsilon


class ConfiguredLayer(SavedLayer):
    """A layer made from a `BertConfig`; saves it with itself."""

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    # Sub-layers get the precision of the layer by name: Keras hands no policy down by itself.

    def dense(self, units: int, name: str, activation: str = "linear") -> Dense:
        spread, policy = self.config.initializer_range, self.dtype_policy
        return Dense(units, activation, spread, name=name, dtype=policy)

    def norm(self, name: str) -> LayerNorm:
        return LayerNorm(self.config.layer_norm_eps, name=name, dtype=self.dtype_policy)

    def dropout_layer(self, rate: float, stream: int, name: str = "dropout") -> Dropout:
        return Dropout(rate, stream, name=name, dtype=self.dtype_policy)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "config": BertConfig.from_dict(config["config"])})
