"""Dropout whose draws have an address."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_bert_impl.layers import random_address

WORDS = 2**32  # how many values a random word has


@dataclasses.dataclass(frozen=True)
class Draw:
    """One draw of dropout.

    Attributes:
        keys: the key words, uint32 [2]; None where nothing is dropped.
        threshold: how many of the 2**32 values of a random word mean "drop".
        start: the place of the first number, where a tensor is computed in parts.
    """

    keys: Any | None
    threshold: int
    start: Any = 0


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Layer):
    """Sets a share of the numbers to zero in training and scales the others up.

    Inside `random_address` the draws are a pure function of the address and of `stream`; without
    it they come from a Keras seed generator, so that plain `fit` works.

    Every number has a random word of 32 bits of its own; words below `threshold` mean "drop".

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
        self.threshold = round(rate * WORDS)
        self.supports_masking = True
        if self.threshold:
            self.seed_generator = keras.random.SeedGenerator(seed=stream)
        self.built = True

    def draw(self, training: bool | None) -> Draw:
        """Makes one draw; it drops nothing where `training` is off or the rate is 0."""
        return Draw(self._keys(training), self.threshold)

    def _keys(self, training: bool | None) -> Any | None:
        if not training or not self.threshold:
            return None
        keys = random_address.present_keys()
        return random_address.stream_keys(self.fresh_keys() if keys is None else keys, self.stream)

    def fresh_keys(self) -> Any:
        """Key words as an address has them, from the seed generator; new ones every time."""
        return random_address.address_keys(ops.cast(self.seed_generator.next(), "uint32"))

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Drops; the result has the shape and type of `inputs`."""
        return drop(inputs, self.draw(training))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape does not change."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {**super().get_config(), "rate": self.rate, "stream": self.stream}


def drop(inputs: Any, draw: Draw) -> Any:
    """Drops by a given draw.

    Args:
        inputs: floating-point tensor of any shape.
        draw: what to drop.

    Returns:
        A tensor of the shape and type of `inputs`; what is kept is scaled up in float32.
    """
    if draw.keys is None:
        return inputs
    keep = random_address.keep_mask(draw.keys, ops.shape(inputs), draw.threshold, draw.start)
    scaled = ops.multiply(ops.cast(inputs, "float32"), WORDS / (WORDS - draw.threshold))
    return ops.cast(ops.where(keep, scaled, ops.zeros_like(scaled)), inputs.dtype)
