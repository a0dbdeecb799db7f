"""Models that score each token: its label, over an encoder that may be frozen, or as an end."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.heads import Logits
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.classifier import LabeledModel
from keras_bert_impl.models.encoder import HeadInputs


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertTokenClassifier(LabeledModel):
    """Encoder, dropout, and `num_labels` scores a position (named entities).

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, length, num_labels]}.

    Args:
        config: the model's configuration.
        num_labels: the number of labels.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> model = BertTokenClassifier(named_config("tiny", 10), num_labels=9)
        >>> tuple(model({"input_ids": np.array([[2, 5, 3]])})["logits"].shape)
        (1, 3, 9)
    """

    reads_pooler = False

    def __init__(
        self, config: BertConfig, num_labels: int, dtype: Any = None, **kwargs: Any
    ) -> None:
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        tagger = Logits(config, num_labels, name="tagger", dtype=dtype)
        outputs = {"logits": tagger(read.sequence)}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.tagger, self.num_labels = read.encoder, tagger, num_labels


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertSpanLabeler(ConfiguredModel):
    """Encoder and two scores a position (SQuAD).

    Takes what `BertEncoder` takes; gives float32 `start_logits` and `end_logits`, [batch, length]
    each. As in the original there is no dropout before the scores.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> model = BertSpanLabeler(named_config("tiny", 10))
        >>> tuple(model({"input_ids": np.array([[2, 5, 3]])})["start_logits"].shape)
        (1, 3)
    """

    reads_pooler = False

    def __init__(self, config: BertConfig, dtype: Any = None, **kwargs: Any) -> None:
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        span = Logits(config, 2, dropout=False, name="span", dtype=dtype)
        scores = span(read.sequence)  # [batch, length, 2]
        outputs = {"start_logits": scores[:, :, 0], "end_logits": scores[:, :, 1]}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.span = read.encoder, span
