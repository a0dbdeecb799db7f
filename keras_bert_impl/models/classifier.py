"""A model that gives a whole input a label or a number."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.logits import Logits
from keras_bert_impl.models.base import encoder_inputs
from keras_bert_impl.models.head_inputs import HeadInputs
from keras_bert_impl.models.labeled import LabeledModel
from keras_bert_impl.models.pooling import with_pooling


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertClassifier(LabeledModel):
    """Encoder, dropout on the vector of the whole input, and `num_labels` scores.

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, num_labels]}. With one label it
    is a regression.

    Args:
        config: the model's configuration.
        num_labels: the number of labels.
        pooling: what the vector of the whole input is: "pooler", BERT's own; "cls", the first
            token's of the last layer; "mean", the mean of all tokens' there, for encoders trained
            for it; "last", the pooler's at the last token instead of the first, for left-to-right
            attention. By default what the configuration says; it is kept in there.

    Raises:
        UserError: there is no such pooling.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2,
        ...                     num_hidden_layers=1, intermediate_size=16)
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> outputs = BertClassifier(config, num_labels=3)(
        ...     {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0})
        >>> tuple(outputs["logits"].shape)
        (1, 3)
    """

    def __init__(
        self, config: BertConfig, num_labels: int, pooling: str | None = None, **kwargs: Any
    ) -> None:
        dtype = kwargs.pop("dtype", None)
        config = with_pooling(config, pooling)
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        classifier = Logits(config, num_labels, name="classifier", dtype=dtype)
        outputs = {"logits": classifier(read.pooled())}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.classifier, self.num_labels = read.encoder, classifier, num_labels
