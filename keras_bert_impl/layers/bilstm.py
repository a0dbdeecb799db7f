"""A bidirectional LSTM on an encoder's vectors: the paper's "+ BiLSTM" ablation (section 5.1)."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.masked_lm_head import gather_positions


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BiLstm(ConfiguredLayer):
    """An LSTM in each direction, of half the hidden size, so that the width of a vector stays.

    The recurrence is Keras' own. Padding is no step of it: the right-to-left LSTM starts at the
    last token of each row.

    Args:
        config: the model's configuration.

    Raises:
        UserError: the hidden size is odd.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> sequence, mask = np.zeros([2, 5, 8], "float32"), np.ones([2, 5], "int32")
        >>> tuple(BiLstm(config)(sequence, mask).shape)
        (2, 5, 8)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        if config.hidden_size % 2:
            raise UserError(
                f"model configuration: hidden_size {config.hidden_size} is odd; a BiLSTM needs "
                "half of it for each direction."
            )
        self.forward_lstm = self._lstm("forward", backwards=False)
        self.backward_lstm = self._lstm("backward", backwards=True)

    def build(self, sequence_shape: Any, input_mask_shape: Any = None) -> None:
        """Makes each direction's kernel, recurrent kernel and bias."""
        del input_mask_shape
        self.forward_lstm.build(sequence_shape)
        self.backward_lstm.build(sequence_shape)

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Runs both directions.

        Args:
            sequence: [batch, length, hidden]
            input_mask: int [batch, length]; 1 for a token, 0 for padding, which stands at the end.

        Returns:
            [batch, length, hidden]: the left-to-right states, then the right-to-left ones.
        """
        mask = ops.cast(input_mask, "bool")
        forward = self.forward_lstm(sequence, mask=mask)  # [batch, length, hidden / 2]
        backward = ops.flip(self.backward_lstm(sequence, mask=mask), axis=1)
        return ops.concatenate([forward, backward], axis=-1)

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any = None) -> Any:
        """The shape of `sequence` does not change."""
        del input_mask_shape
        return sequence_shape

    def _lstm(self, name: str, backwards: bool) -> keras.layers.LSTM:
        return keras.layers.LSTM(
            self.config.hidden_size // 2,
            return_sequences=True,
            go_backwards=backwards,
            name=name,
            dtype=self.dtype_policy,
        )


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LastToken(keras.layers.Layer):
    """The vector of each row's last token: [batch, length, hidden] -> [batch, 1, hidden].

    Example:
        >>> import numpy as np
        >>> rows = np.array([[[1.0], [2.0], [3.0]]], "float32")
        >>> np.array(LastToken()(rows, np.array([[1, 1, 0]]))).tolist()
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
class FinalStates(keras.layers.Layer):
    """What each direction of a `BiLstm` ends with: [batch, length, hidden] -> [batch, 1, hidden].

    The left-to-right half is that of the last token, the right-to-left half that of the first one:
    each has seen the whole row.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]], "float32")
        >>> np.array(FinalStates()(rows, np.array([[1, 1, 0]]))).tolist()
        [[[2.0, 10.0]]]
    """

    def call(self, sequence: Any, input_mask: Any) -> Any:
        """Maps [batch, length, hidden] and the mask, int [batch, length], to [batch, 1, hidden]."""
        half = sequence.shape[-1] // 2
        last = gather_positions(sequence, last_positions(input_mask))  # [batch, 1, hidden]
        return ops.concatenate([last[:, :, :half], sequence[:, :1, half:]], axis=-1)

    def compute_output_shape(self, sequence_shape: Any, input_mask_shape: Any) -> Any:
        """[batch, length, hidden] becomes [batch, 1, hidden]."""
        del input_mask_shape
        return (sequence_shape[0], 1, sequence_shape[2])


def last_positions(input_mask: Any) -> Any:
    """The position of each row's last token: int [batch, length] -> int32 [batch, 1].

    Example:
        >>> import numpy as np
        >>> np.array(last_positions(np.array([[1, 1, 0], [1, 1, 1]]))).tolist()
        [[1], [2]]
    """
    tokens = ops.sum(ops.cast(input_mask, "int32"), axis=1, keepdims=True)
    return ops.maximum(tokens - 1, 0)
