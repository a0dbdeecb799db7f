"""The last layers of heads: float32 scores of labels, and of the token at each masked position."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.dropout import HEAD
from keras_bert_impl.layers.pooling import gather_positions


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Logits(ConfiguredLayer):
    """Dropout, then a dense layer to `units` scores, all of it in float32.

    The layer is float32 whatever the model's dtype policy is: rounding a score to bfloat16 leaves
    three digits of it, and a regression around 100 with three or four different answers. Next to
    the encoder its product costs nothing.

    Args:
        config: the model's configuration.
        units: the number of scores.
        dropout: whether to drop from the input (the next-sentence head of BERT does not).

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> tuple(Logits(config, units=3)(np.zeros([2, 8], "float32")).shape)
        (2, 3)
    """

    def __init__(self, config: BertConfig, units: int, dropout: bool = True, **kwargs: Any) -> None:
        super().__init__(config, **{**kwargs, "dtype": "float32"})  # whatever policy was given
        self.units = units
        self.dropout = self.dropout_layer(config.hidden_dropout_prob if dropout else 0.0, HEAD)
        self.projection = self.dense(units, "dense")
        self._drops = dropout

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel [in, units] and bias [units]."""
        self.projection.build(inputs_shape)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps [..., in] to float32 [..., units]."""
        inputs = self.dropout(inputs, training=training)
        # Not the projection's own call: sets of kernels treat the last product of a head apart.
        return kernels.current().scores(inputs, self.projection.kernel, self.projection.bias)

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> keras.KerasTensor:
        """The scores: float32 [..., units]."""
        del training  # changes no shape
        return keras.KerasTensor((*inputs.shape[:-1], self.units), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "units": self.units, "dropout": self._drops}


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
        self.layer_norm = self.norm("layer_norm")

    def build(self, sequence_shape: Any) -> None:
        """Makes the transform's weights and the tokens' bias [vocabulary]."""
        self.transform.build(sequence_shape)
        self.layer_norm.build(sequence_shape)
        # Added to logits that are float32 already: autocast would round it for nothing.
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
        # Before the transform: about one position in seven is masked, the others need no product.
        hidden = gather_positions(sequence, positions)  # [batch, predictions, hidden]
        hidden = self.layer_norm(self.transform(hidden))
        table = ops.cast(table, self.compute_dtype)
        logits = kernels.current().decode(hidden, table)
        return ops.add(logits, self.output_bias)

    def compute_output_spec(self, sequence: Any, positions: Any, table: Any) -> keras.KerasTensor:
        """The logits: float32 [batch, predictions, vocabulary]."""
        del sequence, table  # their sizes are known from the configuration
        return keras.KerasTensor((*positions.shape, self.config.vocab_size), dtype="float32")
