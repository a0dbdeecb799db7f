"""Opening a model directory as the model that its heads say it is."""

import os
from dataclasses import dataclass
from typing import Any

import keras

from keras_bert_impl.checkpoints.model_directory import (
    architecture_of,
    find_vocabulary,
    label_names,
    read_config,
    read_text_settings,
)
from keras_bert_impl.checkpoints.names import head_names
from keras_bert_impl.checkpoints.restore import check_sizes, open_source, restore
from keras_bert_impl.checkpoints.sources import TensorSource
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings

_CLASSIFIER = "BertForSequenceClassification"
_ENCODER = "BertModel"
_MULTI_LABEL = "multi_label_classification"
_PARTS_OF_OUTPUTS = {
    "pooled_output": ("pooler",),
    "next_sentence_logits": ("pooler", "next_sentence"),
}


@dataclass(frozen=True)
class OpenedModel:
    """A model with its weights, its vocabulary and its casing.

    Attributes:
        model: a `BertPretrainer`, `BertClassifier` or `BertEncoder`.
        text: the vocabulary, the casing and the accents.
        untrained: parts that the directory has no weights for, e.g. "pooler".
    """

    model: keras.Model
    text: TextSettings
    untrained: frozenset[str]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of a classifier's labels, in the order of the classes."""
        names = label_names(self.model.config)
        numbers = range(self.model.num_labels)
        return tuple(names.get(str(number), f"LABEL_{number}") for number in numbers)

    @property
    def is_multi_label(self) -> bool:
        """Whether each label of a classifier is a question of its own."""
        return self.model.config.extra.get("problem_type") == _MULTI_LABEL

    def trained(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """Leaves out the outputs that come from untrained parts."""
        return {
            name: value
            for name, value in outputs.items()
            if self.untrained.isdisjoint(_PARTS_OF_OUTPUTS.get(name, ()))
        }


def open_model(folder: str | os.PathLike[str]) -> OpenedModel:
    """Opens a model directory: masked-LM head, else classifier, else the bare encoder.

    Raises:
        UserError: the directory is no model directory, its vocabulary does not fit its model, or
            it has a head of another kind.
    """
    config = read_config(folder)
    text = read_text_settings(folder)
    if len(text.vocabulary) > config.vocab_size:
        path = find_vocabulary(folder)
        raise UserError(
            f"{path}: has {len(text.vocabulary)} tokens, but the model only knows "
            f"{config.vocab_size}; put the vocabulary there that the model was made with."
        )
    model = _build(folder, config)
    report = restore(model, folder)
    return OpenedModel(
        model=model,
        text=text,
        untrained=frozenset(path.split("/")[0] for path in report.new),
    )


def _build(folder: str | os.PathLike[str], config: BertConfig) -> keras.Model:
    source = open_source(folder)
    heads = _heads(folder, source, config)
    # Before the model is made: a configuration may ask for more memory than there is.
    check_sizes(source, config, heads)
    if "masked_lm" in heads:
        return BertPretrainer(config)
    if "classifier" in heads:
        labels = _count_labels(folder, config)
        if labels > 1 and config.extra.get("problem_type") == "regression":
            raise UserError(
                f"{folder}: gives {labels} numbers (problem_type is regression), which cannot be "
                "opened here; name a model that gives one number, or a classifier."
            )
        return BertClassifier(config, num_labels=labels)
    return BertEncoder(config)


def _heads(
    folder: str | os.PathLike[str], source: TensorSource, config: BertConfig
) -> tuple[str, ...]:
    """The heads that a directory is opened with."""
    if all(source.find(names) for names in head_names("masked_lm")):
        return ("masked_lm", "next_sentence")
    architecture = architecture_of(config) or _ENCODER
    if architecture == _CLASSIFIER and source.find(head_names("classifier")[0]):
        return ("classifier",)
    if architecture != _ENCODER:
        raise UserError(
            f"{folder}: is a {architecture}, which cannot be opened here; name a model directory "
            "with a masked-LM head, a classifier or a bare encoder."
        )
    return ()


def _count_labels(folder: str | os.PathLike[str], config: BertConfig) -> int:
    named = config.extra.get("id2label")
    if named and not isinstance(named, dict):
        raise UserError(
            f"{folder}: id2label in its config.json is no object of numbers and names; write it as "
            '{"0": "no", "1": "yes"}.'
        )
    return len(named or (0, 1))
