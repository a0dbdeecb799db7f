"""A model that gives a whole input one vector."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.encoder import BertEncoder, pooled_vector
from keras_bert_impl.models.head_settings import MEAN, POOLINGS


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class UnitLength(keras.layers.Layer):
    """Scales vectors to length 1, in float32; a vector of zeros stays one.

    Example:
        >>> import numpy as np
        >>> [round(x, 3) for x in np.array(UnitLength()(np.array([[3.0, 4.0]])))[0].tolist()]
        [0.6, 0.8]
    """

    def call(self, vectors: Any) -> Any:
        """Maps [batch, hidden] to float32 [batch, hidden]."""
        vectors = ops.cast(vectors, "float32")
        squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)  # [batch, 1]
        # A vector of zeros has no direction: it stays, where 0 / 0 would be NaN.
        return vectors / ops.maximum(ops.sqrt(squares), 1e-12)

    def compute_output_spec(self, vectors: Any) -> keras.KerasTensor:
        """float32 of the same shape."""
        return keras.KerasTensor(vectors.shape, "float32")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEmbedder(ConfiguredModel):
    """Encoder and pooling: {"embedding": float32 [batch, hidden]} of a whole input.

    Takes what `BertEncoder` takes. `serving.embedder.Embedder` takes texts.

    Args:
        config: the model's configuration.
        pooling: "mean" of all tokens' vectors in the last layer, "cls", the first token's there,
            or "pooler", BERT's own.
        normalize: whether vectors are scaled to length 1.

    Raises:
        UserError: there is no such pooling.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> model = BertEmbedder(named_config("tiny", 10))
        >>> tuple(model({"input_ids": np.array([[2, 5, 3]])})["embedding"].shape)
        (1, 128)
    """

    saves = ("pooling", "normalize")

    def __init__(
        self, config: BertConfig, pooling: str = MEAN, normalize: bool = False, **kwargs: Any
    ) -> None:
        if pooling not in POOLINGS:
            raise UserError(f"`pooling={pooling}` is unknown; choose {', '.join(POOLINGS)}.")
        dtype = kwargs.pop("dtype", None)
        encoder = BertEncoder(config, name="encoder", dtype=dtype)
        inputs = encoder_inputs()
        vector = ops.cast(pooled_vector(pooling, encoder(inputs), inputs["input_mask"]), "float32")
        outputs = {"embedding": UnitLength(name="unit_length")(vector) if normalize else vector}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.pooling, self.normalize = encoder, pooling, normalize
