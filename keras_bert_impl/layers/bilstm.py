"""LSTMs that read a sequence from both ends."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.layers.base import SavedLayer


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class StackedBiLSTM(SavedLayer):
    """Layers of two LSTMs each: one reads the tokens forwards, one backwards, side by side.

    Padding changes no state: backwards, a sequence begins at its last token. The outputs of padding
    mean nothing. `units` is the width of each direction, `depth` the number of layers.

    Example:
        >>> import numpy as np
        >>> vectors, mask = np.zeros([2, 5, 8], "float32"), np.ones([2, 5], "int32")
        >>> tuple(StackedBiLSTM(units=3)(vectors, mask).shape)
        (2, 5, 6)
    """

    saves = ("units", "depth")

    def __init__(self, units: int, depth: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.depth = units, depth
        # cuDNN's kernels cannot be compiled by XLA, by which steps run on a GPU.
        how = {"return_sequences": True, "use_cudnn": False, "dtype": self.dtype_policy}
        lstm = keras.layers.LSTM
        self.forwards = [lstm(units, name=f"forward_{n}", **how) for n in range(depth)]
        self.backwards = [
            lstm(units, name=f"backward_{n}", go_backwards=True, **how) for n in range(depth)
        ]

    def build(self, vectors_shape: Any) -> None:
        """Makes the kernels [in, 4 units], [units, 4 units] and the bias [4 units] of each LSTM."""
        shape = tuple(vectors_shape)
        for pair in zip(self.forwards, self.backwards, strict=True):
            for lstm in pair:
                lstm.build(shape)
            shape = (*shape[:-1], 2 * self.units)

    def call(self, vectors: Any, input_mask: Any) -> Any:
        """Maps [batch, length, in] and the mask, int [batch, length], to [..., 2 * units]."""
        mask = ops.not_equal(input_mask, 0)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            left = forwards(vectors, mask=mask)
            right = ops.flip(backwards(vectors, mask=mask), axis=1)  # it gives the last token first
            vectors = ops.concatenate([left, right], axis=-1)
        return vectors
