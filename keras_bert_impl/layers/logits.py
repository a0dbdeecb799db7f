"""The last layer of every head but that of masked words: float32 scores."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.dropout import HEAD, Dropout


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
        super().__init__(config, **{**kwargs, "dtype": "float32"})
        self.units = units
        rate = config.hidden_dropout_prob if dropout else 0.0
        self.dropout = Dropout(rate, HEAD, name="dropout", dtype=self.dtype_policy)
        self.projection = self.dense(units, "dense")
        self._drops = dropout

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel [in, units] and bias [units]."""
        self.projection.build(inputs_shape)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps [..., in] to float32 [..., units]."""
        inputs = self.dropout(inputs, training=training)
        return kernels.current().scores(inputs, self.projection.kernel, self.projection.bias)

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> keras.KerasTensor:
        """The scores: float32 [..., units]."""
        del training  # changes no shape
        return keras.KerasTensor((*inputs.shape[:-1], self.units), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this layer again."""
        return {**super().get_config(), "units": self.units, "dropout": self._drops}
