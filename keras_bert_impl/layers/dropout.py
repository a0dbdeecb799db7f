"""Dropout whose draws have an address."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.layers import random_address


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Layer):
    """Sets a share of the numbers to zero in training and scales the others up.

    Inside `random_address` the draws are a pure function of the address and of `stream`; without
    it they come from a Keras seed generator, so that plain `fit` works.

    The rate is rounded to a multiple of 1/65536 (0.1 becomes 0.100006), and the scale is the exact
    inverse of what is kept.

    Args:
        rate: the share to drop, from 0 to below 1.
        stream: the number of this layer's own stream; two layers of a model never share one.

    Example:
        >>> import numpy as np
        >>> dropout = Dropout(0.5, stream=0)
        >>> np.array(dropout(np.ones([1, 3], "float32"), training=False)).tolist()
        [[1.0, 1.0, 1.0]]
    """

    def __init__(self, rate: float, stream: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.stream = rate, stream
        self.threshold = round(rate * 65536)
        self.scale = 65536 / (65536 - self.threshold)
        self.supports_masking = True
        if self.threshold:
            self.seed_generator = keras.random.SeedGenerator(seed=stream)
        self.built = True

    def draw_keys(self, training: bool | None) -> Any | None:
        """The key words of one draw, uint32 [2]; None where nothing is dropped."""
        if not training or not self.threshold:
            return None
        keys = random_address.current_keys(self.stream)
        if keys is None:
            state = ops.cast(self.seed_generator.next(), "uint32")
            keys = random_address.stream_keys(random_address.address_keys(state), self.stream)
        return keys

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Drops; the result has the shape and type of `inputs`."""
        keys = self.draw_keys(training)
        return inputs if keys is None else drop(inputs, keys, self.threshold)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape does not change."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {**super().get_config(), "rate": self.rate, "stream": self.stream}


def drop(inputs: Any, keys: Any, threshold: int) -> Any:
    """Drops by given key words.

    Args:
        inputs: floating-point tensor of any shape.
        keys: uint32 [2].
        threshold: how many of 65,536 numbers are dropped on average.

    Returns:
        A tensor of the shape and type of `inputs`.
    """
    keep = random_address.keep_mask(keys, ops.shape(inputs), threshold)
    scale = ops.cast(65536 / (65536 - threshold), inputs.dtype)
    return ops.where(keep, ops.multiply(inputs, scale), ops.zeros_like(inputs))
