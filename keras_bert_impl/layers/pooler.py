"""The vector of the whole input: what the first position says."""

from typing import Any

import keras

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
