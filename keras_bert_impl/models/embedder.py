"""A model that gives a whole input one vector."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import keras
from keras import ops

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.restore import RestoreReport
from keras_bert_impl.checkpoints.sentence_modules import (
    SentenceSettings,
    read_sentence_settings,
    restore_pooler,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.losses import VectorLoss, unit_vectors
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.encoder import BertEncoder, pooled_vector
from keras_bert_impl.models.head_settings import MEAN, POOLER


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class UnitLength(keras.layers.Layer):
    """Scales vectors to length 1, in float32; a vector of zeros stays one.

    Example:
        >>> import numpy as np
        >>> [round(x, 3) for x in np.array(UnitLength()(np.array([[3.0, 4.0]])))[0].tolist()]
        [0.6, 0.8]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)  # a mixed policy would round the vectors first

    def call(self, vectors: Any) -> Any:
        """Maps [batch, hidden] to float32 [batch, hidden]."""
        return unit_vectors(ops.cast(vectors, "float32"))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEmbedder(ConfiguredModel):
    """Encoder and pooling: {"embedding": float32 [batch, hidden]} of a whole input.

    Takes what `BertEncoder` takes, or a tuple of such dicts, a column each, of any lengths:
    `compile(optimizer, loss)` with a loss of `keras_bert_impl.losses`, then
    `fit((first, second), labels)`. `serving.embedder.Embedder` takes texts.

    Args:
        pooling: "mean" of all tokens' vectors in the last layer, "cls", the first token's there,
            or "pooler", BERT's own. `from_pretrained` takes what the directory says, unless
            the caller says it.
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
    sentence: SentenceSettings

    def __init__(
        self,
        config: BertConfig,
        pooling: str = MEAN,
        normalize: bool = False,
        dtype: Any = None,
        frozen: Mapping[str, bool] | None = None,
        sentence: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        encoder = BertEncoder(config, name="encoder", dtype=dtype)
        if pooling != POOLER and frozen is None:  # no loss reaches it
            frozen = {"encoder/pooler": False}
        inputs = encoder_inputs()
        vector = ops.cast(pooled_vector(pooling, encoder(inputs), inputs["input_mask"]), "float32")
        outputs = {"embedding": UnitLength(name="unit_length")(vector) if normalize else vector}
        more = {"config": config, "dtype": dtype, "frozen": frozen, **kwargs}
        super().__init__(inputs=inputs, outputs=outputs, **more)
        self.encoder, self.pooling, self.normalize = encoder, pooling, normalize
        self.reads_pooler = pooling == POOLER
        settings = {**(sentence or {}), "pooling": pooling, "normalize": normalize}
        settings["dimensions"] = tuple(settings.get("dimensions", ()))
        self.sentence = SentenceSettings(**settings)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "sentence": asdict(self.sentence)}

    @classmethod
    def _arguments(cls, source: ModelSource, options: Mapping[str, Any]) -> dict[str, Any]:
        own = dict[str, Any]()
        if not {"pooling", "normalize"} <= options.keys():
            try:
                kept = read_sentence_settings(source.folder) or SentenceSettings()
            except UserError as error:
                remedy = "Or give BertEmbedder.from_pretrained `pooling` and `normalize`."
                raise UserError(f"{error} {remedy}") from error
            own = {"pooling": kept.pooling, "normalize": kept.normalize}
        return super()._arguments(source, {**own, **options})

    def _restore(self, source: ModelSource) -> RestoreReport:
        report, kept = super()._restore(source), None
        with suppress(UserError):  # else `_arguments` refused it, but where the caller said all
            kept = read_sentence_settings(source.folder)
        if kept is None:
            return report
        self.sentence = replace(kept, pooling=self.pooling, normalize=self.normalize)
        pooler = self.encoder.pooler.weights
        if restore_pooler(pooler, source.folder):
            report = replace(report, loaded=(*report.loaded, *(one.path for one in pooler)))
        return report

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs the model on a dict of inputs, or on each of a tuple of them."""
        if _are_columns(inputs):
            return tuple(self(one, *args, **kwargs) for one in inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if _are_columns(inputs):
            return tuple(self.call(one, training=training) for one in inputs)
        return super().call(inputs, training=training, mask=mask)

    def fit(self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains the model, as Keras does.

        Args:
            x: with a loss of `keras_bert_impl.losses` a tuple of columns, each a dict of the
                encoder's inputs [n, length], or batches ((first, second), labels) of a dataset;
                `((first, second),)` where the loss takes no labels.
            y: the labels [n], where `x` is no dataset and the loss takes them.

        Raises:
            UserError: a column is of texts, or no columns came.
        """
        if isinstance(self.loss, VectorLoss) and isinstance(x, tuple | list | Mapping):
            _check_columns(x)
        return super().fit(x, y, *args, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The loss of the columns' vectors, or Keras' of one dict of inputs."""
        if not isinstance(self.loss, VectorLoss):
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        _check_columns(x)
        if sample_weight is not None:
            raise UserError("a loss of vectors takes no sample_weight or class_weight; leave it.")
        return sum(self.losses, self.loss([one["embedding"] for one in y_pred], y))


def _are_columns(inputs: Any) -> bool:
    return isinstance(inputs, tuple | list) and all(isinstance(one, Mapping) for one in inputs)


def _check_columns(x: Any) -> None:
    if not _are_columns(x):
        raise UserError(
            "a loss of vectors takes a tuple of columns, each a dict of the encoder's inputs as a "
            "`Tokenizer` makes them of texts: fit((tokenizer(first), tokenizer(second)), labels)."
        )
