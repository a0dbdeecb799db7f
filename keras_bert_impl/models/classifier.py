"""A model that gives a whole input a label or a number."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.heads import Logits
from keras_bert_impl.models.base import encoder_inputs
from keras_bert_impl.models.head_inputs import HeadInputs
from keras_bert_impl.models.head_settings import LabelUnits, with_pooling
from keras_bert_impl.models.labeled import LabeledModel

_UNITS: Any = tuple[float, float] | None


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertClassifier(LabeledModel):
    """Encoder and a head that gives each input `num_labels` scores.

    Takes what `BertEncoder` takes; gives {"logits": float32 [batch, num_labels]}. With one label it
    is a regression.

    Args:
        config: the model's configuration.
        num_labels: the number of labels.
        pooling: the vector of the whole input: "pooler", BERT's own; "cls", the first token's in
            the last layer; "mean", the mean of all tokens' in the last layer, for encoders trained
            for it; "last", the pooler over the last token instead of the first, for left-to-right
            attention. By default as the configuration says, which keeps it.
        label_units: of a regression that is trained: its weights stay in units of the training
            labels' mean and deviation, while its outputs are in those of the labels. A head that
            starts near 0 learns labels from 1 to 5, or thousands, as soon as labels around 0.
            `save_pretrained` writes weights for the labels' own units: what is written is a
            model like any other. It keeps the units, by default those of this argument, so that
            what is opened rounds as what was trained.

    Raises:
        UserError: there is no such pooling.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> model = BertClassifier(named_config("tiny", 10), num_labels=3)
        >>> tuple(model({"input_ids": np.array([[2, 5, 3]])})["logits"].shape)
        (1, 3)
    """

    def __init__(
        self,
        config: BertConfig,
        num_labels: int,
        pooling: str | None = None,
        label_units: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        dtype = kwargs.pop("dtype", None)
        config = with_pooling(config, pooling)
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        classifier = Logits(config, num_labels, name="classifier", dtype=dtype)
        logits = classifier(read.pooled())
        if label_units is None and num_labels == 1:
            label_units = task_settings(config, {"label_units": _UNITS}).get("label_units")
        units = None if label_units is None else LabelUnits(*map(float, label_units))
        if units is not None:
            in_labels = keras.layers.Rescaling(
                units.deviation, units.mean, name="label_units", dtype="float32"
            )
            logits = in_labels(logits)
        outputs = {"logits": logits}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.classifier, self.num_labels = read.encoder, classifier, num_labels
        self.label_units = units

    def plain_weights(self) -> dict[str, np.ndarray]:
        """See `ConfiguredModel.plain_weights`; the head gives numbers in the labels' units."""
        weights = super().plain_weights()
        units = self.label_units
        return weights if units is None else {n: units.fold(n, w) for n, w in weights.items()}

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this model again."""
        units = self.label_units
        # Left out where there are none: other models' files have no such key.
        return {**super().get_config(), **({} if units is None else {"label_units": [*units]})}
