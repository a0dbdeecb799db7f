"""Layer normalization in float32."""

from typing import Any

import keras

from keras_bert_impl.layers import kernels


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LayerNorm(keras.layers.Layer):
    """Normalizes the last axis to mean 0 and variance 1, then scales by gamma and shifts by beta.

    Mean, variance and the result's last step are computed in float32, whatever the compute type.

    Args:
        epsilon: what is added to the variance.

    Example:
        >>> import numpy as np
        >>> np.array(LayerNorm(1e-12)(np.array([[1.0, 3.0]], "float32"))).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Makes gamma [width] and beta [width]."""
        width = input_shape[-1]
        self.gamma = self.add_weight(
            shape=(width,), initializer="ones", name="gamma", autocast=False
        )
        self.beta = self.add_weight(
            shape=(width,), initializer="zeros", name="beta", autocast=False
        )

    def call(self, inputs: Any) -> Any:
        """Normalizes [..., width]; the result has the layer's compute type."""
        return kernels.current().layer_norm(inputs, *self.parts(), self.compute_dtype)

    def parts(self) -> kernels.Norm:
        """What a kernel needs of this layer: gamma, beta and epsilon."""
        return self.gamma, self.beta, self.epsilon

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape does not change."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {**super().get_config(), "epsilon": self.epsilon}
