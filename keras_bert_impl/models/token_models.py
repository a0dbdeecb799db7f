"""Models that score each token: its label, over an encoder that may be frozen, or as an end."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.bilstm import FeatureTagger
from keras_bert_impl.layers.heads import Logits
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.classifier import LabeledModel
from keras_bert_impl.models.encoder import BertEncoder, HeadInputs
from keras_bert_impl.models.head_settings import frozen_features


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


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertFeatureTagger(LabeledModel):
    """A frozen encoder, a BiLSTM over some of its layers, and `num_labels` scores a position.

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, length, num_labels]}. The
    encoder drops nothing, in training either. The configuration is from `with_frozen_features`.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> from keras_bert_impl.models.head_settings import FrozenFeatures, with_frozen_features
        >>> features = FrozenFeatures("last", lstm_size=4)
        >>> model = BertFeatureTagger(with_frozen_features(named_config("tiny", 10), features), 9)
        >>> tuple(model({"input_ids": np.array([[2, 5, 3]])})["logits"].shape)
        (1, 3, 9)
        >>> frozen = {id(weight) for weight in model.encoder.weights}
        >>> any(id(weight) in frozen for weight in model.trainable_weights)
        False
    """

    reads_pooler = False

    def __init__(
        self, config: BertConfig, num_labels: int, dtype: Any = None, **kwargs: Any
    ) -> None:
        given = frozen_features(config)
        if given is None:
            remedy = "open the model as a BertTokenClassifier"
            raise UserError(f"{config.origin}: has no frozen_features; {remedy}.")
        layers = given.layers(config.num_hidden_layers)
        # `trainable = False` stops the weights only: a frozen encoder would drop in training.
        still = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        encoder = BertEncoder(still, return_all_layers=True, name="encoder", dtype=dtype)
        tagger = FeatureTagger(
            config, num_labels, given.lstm_size, given.mixes, name="feature_tagger", dtype=dtype
        )
        inputs = encoder_inputs()
        found = encoder(inputs)
        blocks = found["all_encoder_layers"]  # numbered from 1; 0 is the embeddings' output
        read = [blocks[one - 1] if one else found["embedding_output"] for one in layers]
        outputs = {"logits": tagger(ops.stack(read, axis=2), inputs["input_mask"])}
        kwargs["frozen"] = {"encoder": False, **(kwargs.get("frozen") or {})}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.feature_tagger, self.num_labels = encoder, tagger, num_labels
