"""What models share that give labels: how many there are, and their names."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_impl.checkpoints.model_source import ModelSource, label_names
from keras_bert_impl.checkpoints.restore import RestoreReport, restore
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.base import ConfiguredModel


class LabeledModel(ConfiguredModel):
    """A model with a score for each of `num_labels` labels.

    `from_pretrained` takes `num_labels`, or `labels` with their names, for a checkpoint without
    such a head; where the checkpoint has a head with another number of labels, it gets a new one.
    """

    num_labels: int
    encoder: Any

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the classes."""
        names = label_names(self.config)
        if len(names) != self.num_labels:
            names = {}
        return tuple(names.get(str(n), f"LABEL_{n}") for n in range(self.num_labels))

    @classmethod
    def _arguments(cls, source: ModelSource, options: Mapping[str, Any]) -> dict[str, Any]:
        rest = dict(options)
        labels = rest.pop("labels", None)
        count = rest.pop("num_labels", None) or len(labels or source.labels)
        if not count:
            raise UserError(
                f"{source.checkpoint}: has no labels; give num_labels, or labels with their names."
            )
        config = source.config if labels is None else with_labels(source.config, labels)
        if labels is not None and len(labels) != count:
            raise UserError(f"there are {len(labels)} labels, but num_labels={count}; give one.")
        return {"config": config, "num_labels": count, **rest}

    def _restore(self, source: ModelSource) -> RestoreReport:
        if len(source.labels) in (0, self.num_labels):
            return super()._restore(source)
        return restore(self.encoder, str(source.checkpoint))

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this model again."""
        return {**super().get_config(), "num_labels": self.num_labels}


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
