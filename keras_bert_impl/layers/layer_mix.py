"""A learned weighted sum of an encoder's layers."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LayerMix(keras.layers.Layer):
    """`gamma * sum_k softmax(scalars)_k layer_k`, as in ELMo (Peters et al. 2018, equation 1).

    It starts as the mean of the layers. The softmax keeps the weights a mixture, and gamma gives
    the sum the size that suits the layer after it.

    Example:
        >>> import numpy as np
        >>> layers = np.array([[[[1.0], [3.0]]]], "float32")  # one token, two layers of width 1
        >>> float(LayerMix()(layers)[0, 0, 0])
        2.0
    """

    def build(self, vectors_shape: Any) -> None:
        """Makes scalars [layers] and gamma [1]."""
        self.scalars = self.add_weight(
            shape=(vectors_shape[-2],), initializer="zeros", name="scalars"
        )
        self.gamma = self.add_weight(shape=(1,), initializer="ones", name="gamma")

    def call(self, vectors: Any) -> Any:
        """Maps [batch, length, layers, hidden] to [batch, length, hidden]."""
        weights = self.gamma * ops.softmax(self.scalars)  # [layers]
        return ops.sum(vectors * ops.expand_dims(weights, -1), axis=-2)

    def compute_output_shape(self, vectors_shape: Any) -> Any:
        """The axis of layers goes."""
        return (*vectors_shape[:-2], vectors_shape[-1])
