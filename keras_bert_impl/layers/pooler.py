"""The vector of the whole input: what the first token says, or the mean of all tokens."""

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
        tokens = ops.maximum(ops.sum(weights, axis=1), 1.0)  # [batch, 1]
        return ops.cast(total / tokens, self.compute_dtype)

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, hidden]."""
        del input_mask_shape
        return (sequence_shape[0], sequence_shape[2])
