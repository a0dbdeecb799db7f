"""A model that marks where an answer starts and where it ends."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.logits import Logits
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.head_inputs import HeadInputs


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertSpanLabeler(ConfiguredModel):
    """Encoder and two scores a position (SQuAD).

    Takes what `BertEncoder` takes; gives float32 `start_logits` and `end_logits`, [batch, length]
    each. As in the original there is no dropout before the scores.

    Args:
        config: the model's configuration.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2,
        ...                     num_hidden_layers=1, intermediate_size=16)
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> outputs = BertSpanLabeler(config)(
        ...     {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0})
        >>> tuple(outputs["start_logits"].shape)
        (1, 3)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        dtype = kwargs.pop("dtype", None)
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        span = Logits(config, 2, dropout=False, name="span", dtype=dtype)
        scores = span(read.sequence)  # [batch, length, 2]
        outputs = {"start_logits": scores[:, :, 0], "end_logits": scores[:, :, 1]}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.span = read.encoder, span
