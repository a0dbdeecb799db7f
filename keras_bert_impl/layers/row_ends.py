"""The vectors at a row's ends: what stands for a row that is read in one direction, or in both."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.layers.masked_lm_head import gather_positions


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LastToken(keras.layers.Layer):
    """The vector of each row's last token: [batch, length, hidden] -> [batch, 1, hidden].

    Example:
        >>> import numpy as np
        >>> rows = np.array([[[1.0], [2.0], [3.0]]], "float32")
        >>> np.array(LastToken()(rows, np.array([[1, 1, 0]]))).tolist()
        [[[2.0]]]
    """

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Maps [batch, length, hidden] and the mask, int [batch, length], to [batch, 1, hidden]."""
        return gather_positions(sequence, last_positions(input_mask))

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, 1, hidden]."""
        del input_mask_shape
        return (sequence_shape[0], 1, sequence_shape[2])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FinalStates(keras.layers.Layer):
    """What each direction of a BiLSTM ends with: [batch, length, hidden] -> [batch, 1, hidden].

    The left-to-right half is that of the last token, the right-to-left half that of the first one:
    each has seen the whole row.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]], "float32")
        >>> np.array(FinalStates()(rows, np.array([[1, 1, 0]]))).tolist()
        [[[2.0, 10.0]]]
    """

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Maps [batch, length, hidden] and the mask, int [batch, length], to [batch, 1, hidden]."""
        half = sequence.shape[-1] // 2
        last = gather_positions(sequence, last_positions(input_mask))  # [batch, 1, hidden]
        return ops.concatenate([last[:, :, :half], sequence[:, :1, half:]], axis=-1)

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, 1, hidden]."""
        del input_mask_shape
        return (sequence_shape[0], 1, sequence_shape[2])


def last_positions(input_mask: Any) -> Any:
    """The position of each row's last token: int [batch, length] -> int32 [batch, 1].

    Example:
        >>> import numpy as np
        >>> np.array(last_positions(np.array([[1, 1, 0], [1, 1, 1]]))).tolist()
        [[1], [2]]
    """
    tokens = ops.sum(ops.cast(input_mask, "int32"), axis=1, keepdims=True)
    return ops.maximum(tokens - 1, 0)
