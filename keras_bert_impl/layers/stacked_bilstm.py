"""LSTMs that read a row from both ends."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class StackedBiLSTM(keras.layers.Layer):
    """Layers of two LSTMs each: one reads the tokens forwards, one backwards, side by side.

    Padding changes no state: backwards, a row begins at its last token. The outputs of padding mean
    nothing.

    Args:
        units: the width of each direction.
        depth: the number of layers.

    Example:
        >>> import numpy as np
        >>> vectors, mask = np.zeros([2, 5, 8], "float32"), np.ones([2, 5], "int32")
        >>> tuple(StackedBiLSTM(units=3)(vectors, mask).shape)
        (2, 5, 6)
    """

    def __init__(self, units: int, depth: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.depth = units, depth
        self.forwards = [self._lstm(f"forward_{number}") for number in range(depth)]
        self.backwards = [
            self._lstm(f"backward_{number}", go_backwards=True) for number in range(depth)
        ]

    def _lstm(self, name: str, **options: Any) -> keras.layers.LSTM:
        # cuDNN's kernels cannot be compiled by XLA, by which steps run on a GPU.
        return keras.layers.LSTM(
            self.units,
            return_sequences=True,
            use_cudnn=False,
            name=name,
            dtype=self.dtype_policy,
            **options,
        )

    def build(self, vectors_shape: Any) -> None:
        """Makes the kernels [in, 4 units], [units, 4 units] and the bias [4 units] of each LSTM."""
        shape = tuple(vectors_shape)
        for pair in zip(self.forwards, self.backwards, strict=True):
            for lstm in pair:
                lstm.build(shape)
            shape = (*shape[:-1], 2 * self.units)

    def call(self, vectors: Any, input_mask: Any) -> Any:
        """Reads the rows.

        Args:
            vectors: [batch, length, in].
            input_mask: int [batch, length], 1 for a token and 0 for padding.

        Returns:
            [batch, length, 2 * units].
        """
        mask = ops.not_equal(input_mask, 0)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            left = forwards(vectors, mask=mask)
            right = ops.flip(backwards(vectors, mask=mask), axis=1)  # it gives the last token first
            vectors = ops.concatenate([left, right], axis=-1)
        return vectors

    def compute_output_shape(self, vectors_shape: Any) -> Any:
        """The last axis becomes twice `units`."""
        return (*vectors_shape[:-1], 2 * self.units)

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {**super().get_config(), "units": self.units, "depth": self.depth}
