"""A model that tags tokens by the layers of an encoder that does not learn."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.bilstm import FeatureTagger
from keras_bert_impl.models.base import encoder_inputs
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.head_settings import frozen_features
from keras_bert_impl.models.labeled import LabeledModel

LAYER_VECTORS = "layer_vectors"
VECTOR_INPUTS = (LAYER_VECTORS, "input_mask")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertFeatureTagger(LabeledModel):
    """A frozen encoder, a BiLSTM over some of its layers, and `num_labels` scores a position.

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, length, num_labels]}. The
    encoder drops nothing, in training either. `on_vectors` is the part that learns, as a model of
    its own: from `layer_vectors` [batch, length, layers, hidden] and `input_mask` to the same
    logits.

    Args:
        config: the model's configuration, from `with_frozen_features`.
        num_labels: the number of labels.

    Attributes:
        layers_read: the numbers of the layers; see `FrozenFeatures.layers`.

    Raises:
        UserError: the configuration says no features, or the encoder has too few blocks.

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

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        dtype = kwargs.pop("dtype", None)
        given = frozen_features(config)
        if given is None:
            raise UserError(
                f"{config.origin}: has no frozen_features; open the model as a BertTokenClassifier."
            )
        layers = given.layers(config.num_hidden_layers)
        # `trainable = False` stops the weights only: a frozen encoder would drop in training.
        still = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        encoder = BertEncoder(still, return_all_layers=True, name="encoder", dtype=dtype)
        tagger = FeatureTagger(
            config, num_labels, given.lstm_size, given.mixes, name="feature_tagger", dtype=dtype
        )
        inputs = encoder_inputs()
        picked = [one for _, one in _picked(encoder(inputs), layers)]
        logits = tagger(ops.stack(picked, axis=2), inputs["input_mask"])
        super().__init__(
            inputs=inputs, outputs={"logits": logits}, config=config, dtype=dtype, **kwargs
        )
        encoder.trainable = False  # after the base class has set it for the whole model
        self.encoder, self.feature_tagger, self.num_labels = encoder, tagger, num_labels
        self.layers_read = layers
        shape = (None, len(layers), config.hidden_size)
        vectors = {
            LAYER_VECTORS: keras.Input(shape, name=LAYER_VECTORS),
            "input_mask": keras.Input((None,), dtype="int32", name="input_mask"),
        }
        self.on_vectors = keras.Model(vectors, {"logits": tagger(*vectors.values())})


def layer_name(number: int) -> str:
    """The name that `layer_outputs` gives a layer.

    Example:
        >>> layer_name(3)
        'layer_03'
    """
    return f"layer_{number:02d}"


def layer_outputs(encoder: BertEncoder, layers: Sequence[int]) -> keras.Model:
    """A model from an encoder's inputs to the outputs of some layers, float32 each.

    Args:
        encoder: made with `return_all_layers`.
        layers: their numbers; see `FrozenFeatures.layers`.

    Returns:
        A model that gives a dict by `layer_name` of [batch, length, hidden].
    """
    inputs = encoder_inputs()
    picked = _picked(encoder(inputs), layers)
    return keras.Model(inputs, {name: ops.cast(one, "float32") for name, one in picked})


def _picked(outputs: dict[str, Any], layers: Sequence[int]) -> list[tuple[str, Any]]:
    blocks = outputs["all_encoder_layers"]
    return [
        (layer_name(number), blocks[number - 1] if number else outputs["embedding_output"])
        for number in layers
    ]
