"""The sum of token, segment and position embeddings, normalized."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.base import ConfiguredLayer, truncated_normal
from keras_bert_impl.layers.dropout import EMBEDDINGS


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEmbeddings(ConfiguredLayer):
    """Turns ids into vectors: token + segment + position, LayerNorm, dropout.

    The tables are read in float32, so that the gradients of a repeated token are summed in float32.

    Args:
        config: the model's configuration.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> ids = np.zeros([2, 5], "int32")
        >>> tuple(BertEmbeddings(config)(ids, ids).shape)
        (2, 5, 8)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.layer_norm = self.norm("layer_norm")
        self.dropout = self.dropout_layer(config.hidden_dropout_prob, EMBEDDINGS)

    def build(self, input_ids_shape: Any) -> None:
        """Makes the three tables, [entries, hidden] each."""
        del input_ids_shape  # no table depends on it
        config = self.config
        self.token_table = self._table("token_embeddings", config.vocab_size)
        self.segment_table = self._table("segment_embeddings", config.type_vocab_size)
        self.position_table = self._table("position_embeddings", config.max_position_embeddings)
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, input_ids: Any, segment_ids: Any, training: bool | None = None) -> Any:
        """Looks up and adds.

        Args:
            input_ids: int32 [batch, length]
            segment_ids: int32 [batch, length]
            training: whether to drop.

        Returns:
            [batch, length, hidden]
        """
        length = ops.shape(input_ids)[1]
        total = ops.take(self.token_table, input_ids, axis=0)  # [batch, length, hidden]
        # A slice: positions are 0, 1, … in every text, so that no gather is needed.
        total = ops.add(total, self.position_table[:length])
        # Two segments: a product with their one-hot code is cheaper than a second gather, and its
        # gradient is one product instead of a scatter.
        segments = ops.one_hot(segment_ids, self.config.type_vocab_size, dtype="float32")
        total = ops.add(total, ops.matmul(segments, ops.convert_to_tensor(self.segment_table)))
        return self.dropout(self.layer_norm(total), training=training)

    def compute_output_shape(self, input_ids_shape: Any) -> Any:
        """[batch, length] becomes [batch, length, hidden]."""
        return (*input_ids_shape, self.config.hidden_size)

    def _table(self, name: str, entries: int) -> Any:
        return self.add_weight(
            shape=(entries, self.config.hidden_size),
            initializer=truncated_normal(self.config.initializer_range),
            name=name,
            autocast=False,  # read in float32; see above
        )
