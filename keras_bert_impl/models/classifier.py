"""A model that gives a whole input a label or a number."""

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import keras
import numpy as np

from keras_bert_impl.checkpoints.model_source import ModelSource, named_labels
from keras_bert_impl.checkpoints.restore import RestoreReport, restore
from keras_bert_impl.checkpoints.task_settings import task_settings, with_labels, without_task
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import argument
from keras_bert_impl.layers.heads import Logits
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.encoder import HeadInputs
from keras_bert_impl.models.head_settings import LabelUnits, pools_by_pooler, with_pooling
from keras_bert_impl.options import Rules
from keras_bert_impl.tokenization.reference import as_name

_UNITS: Any = tuple[float, Annotated[float, Rules(sentence="", more_than=0)]]
_log = logging.getLogger(__name__)


class LabeledModel(ConfiguredModel):
    """A model with a score for each of `num_labels` labels.

    `from_pretrained` takes `num_labels`, or `labels` with their names, for a checkpoint without
    such a head; where the checkpoint has a head with another number of labels, it gets a new one.
    """

    saves = ("num_labels",)

    num_labels: int
    encoder: Any

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the classes."""
        return named_labels(self.config, self.num_labels)

    @classmethod
    def _arguments(cls, source: ModelSource, options: Mapping[str, Any]) -> dict[str, Any]:
        rest = dict(options)
        labels = rest.pop("labels", None)
        if labels is not None:
            labels = _checked_names(labels)
        count = rest.pop("num_labels", None)
        if count is None and not (count := len(labels or source.labels)):
            remedy = "give num_labels, or labels with their names"
            raise UserError(f"{source.checkpoint}: has no labels; {remedy}.")
        if labels is not None and len(labels) != count:
            raise UserError(f"there are {len(labels)} labels, but num_labels={count!r}; give one.")
        config = source.config
        if _is_another_task(source, labels, count):
            config = without_task(config)
        if labels is not None:
            config = with_labels(config, labels)
        return {"config": config, "num_labels": count, **rest}

    def _restore(self, source: ModelSource) -> RestoreReport:
        # A head with another number of labels does not fit: the encoder's weights alone are taken.
        if len(source.labels) in (0, self.num_labels):
            return super()._restore(source)
        return restore(self.encoder, source.tensors())


def _checked_names(labels: Sequence[str]) -> list[str]:
    if isinstance(labels, (str, bytes)):
        raise UserError(f"labels={labels!r} is one text; give a list of names.")
    given = argument("labels", [*labels] if np.iterable(labels) else labels, list[str])
    # The labels of tables are compared in composed form (NFC), too.
    names = [as_name(label) for label in given]
    repeated = [name for number, name in enumerate(names) if name in names[:number]]
    if repeated:
        raise UserError(f"labels has {repeated[0]!r} twice; give each label a name of its own.")
    return names


def _is_another_task(source: ModelSource, labels: Sequence[str] | None, count: int) -> bool:
    """Whether the labels are others than those that the source was trained for."""
    if count != len(source.labels):
        return True
    if labels is None or tuple(labels) == source.labels:
        return False
    if sorted(labels) == sorted(source.labels):
        _log.warning(
            f"labels has the names of {source.checkpoint} in another order; its trained head gives "
            f"them as {', '.join(source.labels)}: leave labels out unless you train it anew."
        )
        return False
    return source.labels != tuple(f"LABEL_{number}" for number in range(count))  # only named now


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
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        config = with_pooling(config, pooling)
        inputs = encoder_inputs()
        read = HeadInputs.of(config, inputs, dtype)
        classifier = Logits(config, num_labels, name="classifier", dtype=dtype)
        logits = classifier(read.pooled())
        if label_units is None and num_labels == 1:
            label_units = task_settings(config, {"label_units": _UNITS | None}).get("label_units")
        units = None
        if label_units is not None:
            units = LabelUnits(*argument("label_units", np.ravel(label_units).tolist(), _UNITS))
            scale = {"scale": units.deviation, "offset": units.mean}
            logits = keras.layers.Rescaling(**scale, name="label_units", dtype="float32")(logits)
        outputs = {"logits": logits}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.classifier, self.num_labels = read.encoder, classifier, num_labels
        self.label_units, self.reads_pooler = units, pools_by_pooler(config)

    def plain_weights(self) -> dict[str, np.ndarray]:
        """See `ConfiguredModel.plain_weights`; the head gives numbers in the labels' units."""
        weights = super().plain_weights()
        units = self.label_units
        return weights if units is None else {n: units.fold(n, w) for n, w in weights.items()}

    def get_config(self) -> dict[str, Any]:
        units = self.label_units
        # Left out where there are none: other models' files have no such key.
        return {**super().get_config(), **({} if units is None else {"label_units": [*units]})}
