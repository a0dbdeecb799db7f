"""The head over frozen layers: their combination, a BiLSTM, and a score of each label."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.layer_mix import LayerMix
from keras_bert_impl.layers.logits import Logits
from keras_bert_impl.layers.stacked_bilstm import StackedBiLSTM


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FeatureTagger(ConfiguredLayer):
    """BERT's paper, section 5.3: a BiLSTM of two layers before the classification layer.

    Args:
        config: the encoder's configuration; its dropout stands before the classification layer.
        labels: the number of labels.
        lstm_size: the width of each direction of the BiLSTM.
        mixes: whether several layers become their learned weighted sum; else they stand side by
            side.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> vectors, mask = np.zeros([2, 5, 4, 8], "float32"), np.ones([2, 5], "int32")
        >>> tuple(FeatureTagger(config, labels=3, lstm_size=6, mixes=True)(vectors, mask).shape)
        (2, 5, 3)
    """

    def __init__(
        self, config: BertConfig, labels: int, lstm_size: int, mixes: bool, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.labels, self.lstm_size, self.mixes = labels, lstm_size, mixes
        self.mix = LayerMix(name="mix", dtype=self.dtype_policy) if mixes else None
        self.lstm = StackedBiLSTM(lstm_size, name="lstm", dtype=self.dtype_policy)
        self.logits = Logits(config, labels, name="logits", dtype=self.dtype_policy)

    def build(self, vectors_shape: Any) -> None:
        """Makes the weights of the parts."""
        *outer, layers, hidden = vectors_shape
        if self.mix is not None:
            self.mix.build(vectors_shape)
            layers = 1
        self.lstm.build((*outer, layers * hidden))
        self.logits.build((*outer, 2 * self.lstm_size))

    def call(self, vectors: Any, input_mask: Any, training: bool | None = None) -> Any:
        """Scores the tokens.

        Args:
            vectors: [batch, length, layers, hidden].
            input_mask: int [batch, length], 1 for a token and 0 for padding.
            training: whether to drop.

        Returns:
            float32 [batch, length, labels].
        """
        if self.mix is not None:
            joined = self.mix(vectors)
        else:
            batch, length, layers, hidden = ops.shape(vectors)
            joined = ops.reshape(vectors, [batch, length, layers * hidden])
        return self.logits(self.lstm(joined, input_mask), training=training)

    def compute_output_spec(
        self, vectors: Any, input_mask: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        """The scores: float32 [batch, length, labels]."""
        del input_mask, training  # they change no shape
        return keras.KerasTensor((*vectors.shape[:-2], self.labels), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this layer again."""
        own = {"labels": self.labels, "lstm_size": self.lstm_size, "mixes": self.mixes}
        return {**super().get_config(), **own}
