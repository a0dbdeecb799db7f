"""A dense layer as BERT initializes and names it."""

from typing import Any

import keras

from keras_bert_impl.layers import kernels


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dense(keras.layers.Layer):
    """`activation(inputs @ kernel + bias)` with a truncated-normal kernel.

    Args:
        units: the width of the result.
        activation: one of `keras_bert_impl.config.ACTIVATIONS`.
        initializer_range: the standard deviation of the kernel's truncated normal.

    Example:
        >>> import numpy as np
        >>> Dense(3)(np.zeros([2, 5], "float32")).shape[1]
        3
    """

    def __init__(
        self,
        units: int,
        activation: str = "linear",
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.activation = units, activation
        self.initializer_range = initializer_range

    def build(self, input_shape: Any) -> None:
        """Makes kernel [in, units] and bias [units]."""
        self.kernel = self.add_weight(
            shape=(input_shape[-1], self.units),
            initializer=truncated_normal(self.initializer_range),
            name="kernel",
        )
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, inputs: Any) -> Any:
        """Maps [..., in] to [..., units]."""
        return kernels.current().dense(inputs, self.kernel, self.bias, self.activation)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The last axis becomes `units`."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {
            **super().get_config(),
            "units": self.units,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }


def truncated_normal(deviation: float) -> keras.initializers.Initializer:
    """The initializer of every BERT matrix: normal, cut at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=deviation)
