"""Vectors taken out of a sequence: one for the whole input, or those at given positions."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.base import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Pooler(ConfiguredLayer):
    """`tanh(dense(first position))`.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> tuple(Pooler(config)(np.zeros([2, 5, 8], "float32")).shape)
        (2, 8)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.projection = self.dense(config.hidden_size, "dense", activation="tanh")

    def build(self, sequence_shape: Any) -> None:
        """Makes kernel [hidden, hidden] and bias [hidden]."""
        self.projection.build((sequence_shape[0], sequence_shape[2]))

    def call(self, sequence: Any) -> Any:
        """Maps [batch, length, hidden] to [batch, hidden]."""
        return self.projection(sequence[:, 0, :])

    def compute_output_shape(self, sequence_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, hidden]."""
        return (sequence_shape[0], sequence_shape[2])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedMean(keras.layers.Layer):
    """The mean of the vectors of all tokens, padding left out; added up in float32.

    [CLS] and [SEP] count like other tokens, as in sentence-transformers' mean pooling.

    Example:
        >>> import numpy as np
        >>> sequence = np.array([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]], "float32")
        >>> np.array(MaskedMean()(sequence, np.array([[1, 1, 0]]))).tolist()
        [[2.0, 3.0]]
    """

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Maps [batch, length, hidden] and the mask, int [batch, length], to [batch, hidden]."""
        weights = ops.expand_dims(ops.cast(input_mask, "float32"), -1)  # [batch, length, 1]
        total = ops.sum(ops.cast(sequence, "float32") * weights, axis=1)  # [batch, hidden]
        # An input of padding alone becomes 0, not NaN.
        tokens = ops.maximum(ops.sum(weights, axis=1), 1.0)  # [batch, 1]
        return ops.cast(total / tokens, self.compute_dtype)

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, hidden]."""
        del input_mask_shape
        return (sequence_shape[0], sequence_shape[2])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LastToken(keras.layers.Layer):
    """The vector of each sequence's last token: [batch, length, hidden] -> [batch, 1, hidden].

    Example:
        >>> import numpy as np
        >>> sequence = np.array([[[1.0], [2.0], [3.0]]], "float32")
        >>> np.array(LastToken()(sequence, np.array([[1, 1, 0]]))).tolist()
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
class FinalStates(LastToken):
    """The last state of each direction of a BiLSTM: [batch, length, hidden] -> [batch, 1, hidden].

    The left-to-right half is that of the last token, the right-to-left half that of the first one:
    each has seen the whole sequence.

    Example:
        >>> import numpy as np
        >>> sequence = np.array([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]], "float32")
        >>> np.array(FinalStates()(sequence, np.array([[1, 1, 0]]))).tolist()
        [[[2.0, 10.0]]]
    """

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Maps [batch, length, hidden] and the mask, int [batch, length], to [batch, 1, hidden]."""
        half = sequence.shape[-1] // 2
        last = super().call(sequence, input_mask)
        return ops.concatenate([last[:, :, :half], sequence[:, :1, half:]], axis=-1)


def last_positions(input_mask: Any) -> Any:
    """The position of each sequence's last token: int [batch, length] -> int32 [batch, 1].

    Example:
        >>> import numpy as np
        >>> np.array(last_positions(np.array([[1, 1, 0], [1, 1, 1]]))).tolist()
        [[1], [2]]
    """
    tokens = ops.sum(ops.cast(input_mask, "int32"), axis=1, keepdims=True)
    # A sequence of padding alone has no last token: -1 would be out of bounds in a gather.
    return ops.maximum(tokens - 1, 0)


def gather_positions(sequence: Any, positions: Any) -> Any:
    """The vectors at some positions of every sequence.

    Args:
        sequence: [batch, length, hidden]
        positions: int32 [batch, predictions]; below length.

    Returns:
        [batch, predictions, hidden]

    Example:
        >>> import numpy as np
        >>> sequence = np.arange(6.0).reshape([2, 3, 1])
        >>> np.array(gather_positions(sequence, np.array([[2], [0]]))).ravel().tolist()
        [2.0, 3.0]
    """
    batch, length, hidden = ops.shape(sequence)
    starts = ops.expand_dims(ops.multiply(ops.arange(batch, dtype="int32"), length), -1)
    # The column comes first: Keras' add takes a second argument [batch, 1] for a bias of the last
    # axis where batch equals the number of predictions.
    flat = ops.add(ops.cast(starts, "int32"), ops.cast(positions, "int32"))
    return ops.take(ops.reshape(sequence, [-1, hidden]), flat, axis=0)
