"""Vectors taken out of a sequence, and the heads' last layers: float32 scores."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.json_files import argument
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.dropout import HEAD
from keras_bert_impl.options import bounded


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
        return gather_positions(sequence, last_positions(input_mask))


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
    # Padding may stand in front; a sequence of padding alone has no last token, and gives 0.
    places = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    return ops.max(ops.cast(input_mask, "int32") * places, axis=1, keepdims=True, initial=0)


def gather_positions(sequence: Any, positions: Any) -> Any:
    """The vectors of [batch, length, hidden] at positions int32 [batch, predictions].

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


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Logits(ConfiguredLayer):
    """Dropout, then a dense layer to `units` scores, all of it in float32.

    The layer is float32 whatever the model's dtype policy is: rounding a score to bfloat16 leaves
    three digits of it, and a regression around 100 with three or four different answers. Next to
    the encoder its product costs nothing. The next-sentence head of BERT drops nothing.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> tuple(Logits(config, units=3)(np.zeros([2, 8], "float32")).shape)
        (2, 3)
    """

    def __init__(self, config: BertConfig, units: int, dropout: bool = True, **kwargs: Any) -> None:
        super().__init__(config, **{**kwargs, "dtype": "float32"})  # whatever policy was given
        self.units = argument("num_labels", units, bounded(int, at_least=1))
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

    def get_config(self) -> dict[str, Any]:
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
        """Scores every token of the vocabulary: float32 logits [batch, predictions, vocabulary].

        Of a sequence [batch, length, hidden], positions int32 [batch, predictions] and the token
        table [vocabulary, hidden].
        """
        # Before the transform: about one position in seven is masked, the others need no product.
        hidden = gather_positions(sequence, positions)  # [batch, predictions, hidden]
        hidden = self.layer_norm(self.transform(hidden))
        table = ops.cast(table, self.compute_dtype)
        logits = kernels.current().decode(hidden, table)
        return ops.add(logits, self.output_bias)
