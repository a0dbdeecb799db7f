"""A model that gives every token a label."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.logits import Logits
from keras_bert_impl.models.base import encoder_inputs
from keras_bert_impl.models.head_inputs import HeadInputs
from keras_bert_impl.models.labeled import LabeledModel


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertTokenClassifier(LabeledModel):
    """Encoder, dropout, and `num_labels` scores a position (named entities).

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, length, num_labels]}.

    Args:
        config: the model's configuration.
        num_labels: the number of labels.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2,
        ...                     num_hidden_layers=1, intermediate_size=16)
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> outputs = BertTokenClassifier(config, num_labels=9)(
        ...     {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0})
        >>> tuple(outputs["logits"].shape)
        (1, 3, 9)
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        dtype = kwargs.pop("dtype", None)
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        tagger = Logits(config, num_labels, name="tagger", dtype=dtype)
        outputs = {"logits": tagger(read.sequence)}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.tagger, self.num_labels = read.encoder, tagger, num_labels
