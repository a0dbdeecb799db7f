"""The head that predicts the token at each masked position."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.layer_norm import LayerNorm


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLmHead(ConfiguredLayer):
    """Transform, LayerNorm, then a product with the token table, at the masked positions only.

    The decoder is the encoder's token table, which comes as an input of the call: one weight, no
    copy. Under mixed_bfloat16 its product is computed in bfloat16 and the logits keep three digits:
    it is the largest product of a step, its loss is an average over thousands of tokens, and
    softmax and loss behind it are float32. All other heads are float32; see `Logits`.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> sequence, table = np.zeros([2, 5, 8], "float32"), np.zeros([10, 8], "float32")
        >>> positions = np.array([[1, 4, 0], [2, 0, 0]])
        >>> tuple(MaskedLmHead(config)(sequence, positions, table).shape)
        (2, 3, 10)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.transform = self.dense(config.hidden_size, "transform", activation=config.hidden_act)
        self.layer_norm = LayerNorm(
            config.layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )

    def build(self, sequence_shape: Any) -> None:
        """Makes the transform's weights and the tokens' bias [vocabulary]."""
        self.transform.build(sequence_shape)
        self.layer_norm.build(sequence_shape)
        self.output_bias = self.add_weight(
            shape=(self.config.vocab_size,), initializer="zeros", name="output_bias", autocast=False
        )

    def call(self, sequence: Any, positions: Any, table: Any) -> Any:
        """Scores every token of the vocabulary.

        Args:
            sequence: [batch, length, hidden]
            positions: int32 [batch, predictions]; below length.
            table: the token table, [vocabulary, hidden].

        Returns:
            float32 logits [batch, predictions, vocabulary]
        """
        hidden = gather_positions(sequence, positions)  # [batch, predictions, hidden]
        hidden = self.layer_norm(self.transform(hidden))
        table = ops.cast(table, self.compute_dtype)
        logits = kernels.current().decode(hidden, table)
        return ops.add(logits, self.output_bias)

    def compute_output_spec(self, sequence: Any, positions: Any, table: Any) -> keras.KerasTensor:
        """The logits: float32 [batch, predictions, vocabulary]."""
        del sequence, table  # their sizes are known from the configuration
        return keras.KerasTensor((*positions.shape, self.config.vocab_size), dtype="float32")


def gather_positions(sequence: Any, positions: Any) -> Any:
    """The vectors at some positions of every row.

    Args:
        sequence: [batch, length, hidden]
        positions: int32 [batch, predictions]; below length.

    Returns:
        [batch, predictions, hidden]

    Example:
        >>> import numpy as np
        >>> rows = np.arange(6.0).reshape([2, 3, 1])
        >>> np.array(gather_positions(rows, np.array([[2], [0]]))).ravel().tolist()
        [2.0, 3.0]
    """
    batch, length, hidden = ops.shape(sequence)
    starts = ops.expand_dims(ops.multiply(ops.arange(batch, dtype="int32"), length), -1)
    # The column comes first: Keras' add takes a second argument [batch, 1] for a bias of the last
    # axis where batch equals the number of predictions.
    flat = ops.add(ops.cast(starts, "int32"), ops.cast(positions, "int32"))
    return ops.take(ops.reshape(sequence, [-1, hidden]), flat, axis=0)
