"""LSTMs that read a sequence from both ends, and the head of BERT's paper that is made of them."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.base import ConfiguredLayer, SavedLayer
from keras_bert_impl.layers.heads import Logits


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


# Saved files know it by its first name.
@keras.saving.register_keras_serializable(package="keras_bert_impl", name="LayerMix")
class ScalarMix(keras.layers.Layer):
    """`gamma * sum_k softmax(scalars)_k layer_k`, as in ELMo (Peters et al. 2018, equation 1).

    It starts as the mean of the layers. The softmax keeps the weights a mixture, and gamma gives
    the sum the size that suits the layer after it.

    Example:
        >>> import numpy as np
        >>> layers = np.array([[[[1.0], [3.0]]]], "float32")  # one token, two layers of width 1
        >>> float(ScalarMix()(layers)[0, 0, 0])
        2.0
    """

    def build(self, vectors_shape: Any) -> None:
        """Makes scalars [layers] and gamma [1]."""
        layers = vectors_shape[-2]
        self.scalars = self.add_weight(shape=(layers,), initializer="zeros", name="scalars")
        self.gamma = self.add_weight(shape=(1,), initializer="ones", name="gamma")

    def call(self, vectors: Any) -> Any:
        """Maps [batch, length, layers, hidden] to [batch, length, hidden]."""
        weights = self.gamma * ops.softmax(self.scalars)  # [layers]
        return ops.sum(vectors * ops.expand_dims(weights, -1), axis=-2)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FeatureTagger(ConfiguredLayer):
    """BERT's paper, section 5.3: a BiLSTM of two layers before the classification layer.

    The encoder's dropout stands before the classification layer. Where it `mixes`, several layers
    become their learned weighted sum; else they stand side by side.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> vectors, mask = np.zeros([2, 5, 4, 8], "float32"), np.ones([2, 5], "int32")
        >>> tuple(FeatureTagger(config, labels=3, lstm_size=6, mixes=True)(vectors, mask).shape)
        (2, 5, 3)
    """

    saves = ("labels", "lstm_size", "mixes")

    def __init__(
        self, config: BertConfig, labels: int, lstm_size: int, mixes: bool, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.labels, self.lstm_size, self.mixes = labels, lstm_size, mixes
        self.mix = ScalarMix(name="mix", dtype=self.dtype_policy) if mixes else None
        self.lstm = StackedBiLSTM(lstm_size, name="lstm", dtype=self.dtype_policy)
        self.logits = Logits(config, labels, name="logits", dtype=self.dtype_policy)

    def build(self, vectors_shape: Any) -> None:
        *outer, layers, hidden = vectors_shape
        if self.mix is not None:
            self.mix.build(vectors_shape)
            layers = 1
        self.lstm.build((*outer, layers * hidden))
        self.logits.build((*outer, 2 * self.lstm_size))

    def call(self, vectors: Any, input_mask: Any, training: bool | None = None) -> Any:
        """Maps [batch, length, layers, hidden] and the mask to float32 [batch, length, labels]."""
        if self.mix is not None:
            joined = self.mix(vectors)
        else:
            batch, length, layers, hidden = ops.shape(vectors)
            joined = ops.reshape(vectors, [batch, length, layers * hidden])
        return self.logits(self.lstm(joined, input_mask), training=training)
