"""The base of models that give labels: how many there are, and their names."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource, label_names
from keras_bert_impl.checkpoints.restore import RestoreReport, restore
from keras_bert_impl.checkpoints.task_settings import without_task
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.base import ConfiguredModel
from keras_bert_impl.tokenization.reference import as_name

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
        names = label_names(self.config)
        # The names of another task's labels, which a configuration may still hold, are not ours.
        if len(names) != self.num_labels:
            names = {}
        return tuple(names.get(str(n), f"LABEL_{n}") for n in range(self.num_labels))

    @classmethod
    def _arguments(cls, source: ModelSource, options: Mapping[str, Any]) -> dict[str, Any]:
        rest = dict(options)
        labels = rest.pop("labels", None)
        if labels is not None:
            _check_labels(labels)
            # The labels of tables are compared in composed form (NFC), too.
            labels = [as_name(label) for label in labels]
        count = rest.pop("num_labels", None) or len(labels or source.labels)
        if not count:
            raise UserError(
                f"{source.checkpoint}: has no labels; give num_labels, or labels with their names."
            )
        if labels is not None and len(labels) != count:
            raise UserError(f"there are {len(labels)} labels, but num_labels={count}; give one.")
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


def _check_labels(labels: Sequence[str]) -> None:
    if isinstance(labels, (str, bytes)):
        raise UserError(f"labels={labels!r} is one text; give a list of names.")
    names = [as_name(label) for label in labels]
    repeated = [name for number, name in enumerate(names) if name in names[:number]]
    if repeated:
        raise UserError(f"labels has {repeated[0]!r} twice; give each label a name of its own.")


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


def with_labels(config: BertConfig, labels: Sequence[str]) -> BertConfig:
    """A configuration that names the labels, as Hugging Face's does.

    Example:
        >>> with_labels(BertConfig(vocab_size=9), ["ham", "spam"]).extra["id2label"]
        {'0': 'ham', '1': 'spam'}
    """
    names = {
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
    }
    return config.replace(extra={**config.extra, **names})
