"""Opening a model, weights and all, as what its heads say it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keras_bert_impl.checkpoints.model_source import ModelSource, find_model
from keras_bert_impl.checkpoints.names import encoder_names, head_names
from keras_bert_impl.checkpoints.restore import check_sizes, refuse_untrained, restore
from keras_bert_impl.checkpoints.sentence_modules import restore_pooler
from keras_bert_impl.checkpoints.sources import TensorSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath
from keras_bert_impl.tokenization.text_settings import TextSettings

if TYPE_CHECKING:  # what a model is, is known before TensorFlow is loaded
    import keras

_CLASSIFIER = "BertForSequenceClassification"
_ENCODER = "BertModel"
_WITH_MASKS = ("BertForMaskedLM", "BertForPreTraining")
_PARTS_OF_OUTPUTS = {
    "pooled_output": ("pooler",),
    "next_sentence_logits": ("pooler", "next_sentence"),
}


@dataclass(frozen=True)
class OpenedModel:
    """A model with its weights, its vocabulary and its casing.

    `untrained` are parts that the directory has no weights for, e.g. "pooler".
    """

    model: "keras.Model"
    source: ModelSource
    untrained: frozenset[str]

    @property
    def text(self) -> TextSettings:
        return self.source.text

    @property
    def labels(self) -> tuple[str, ...]:
        return self.source.labels

    @property
    def is_multi_label(self) -> bool:
        return self.source.is_multi_label

    def trained(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """Leaves out the outputs that come from untrained parts."""
        return {
            name: value
            for name, value in outputs.items()
            if self.untrained.isdisjoint(_PARTS_OF_OUTPUTS.get(name, ()))
        }


def open_model(
    path_or_name: StrPath,
    *,
    build: "Callable[[ModelSource], keras.Model] | None" = None,
    bert_config_file: StrPath | None = None,
    vocab_file: StrPath | None = None,
    do_lower_case: bool | None = None,
    adapter: StrPath | None = None,
) -> OpenedModel:
    """Opens a model: with a masked-LM head, else as a classifier, else as the bare encoder.

    Args:
        path_or_name: the model, in any form that `find_model` understands.
        build: builds a model of another kind, whose weights are then taken from the source.
        bert_config_file: the configuration, if there is none beside the weights.
        vocab_file: the vocabulary, if there is none beside the weights.
        do_lower_case: the casing, where no file next to the weights says it.
        adapter: the folder of an adapter that changes the model.

    Raises:
        UserError: there is no such model, its files do not fit together, or it has a head of
            another kind or half of one.
    """
    source = find_model(
        path_or_name,
        bert_config_file=bert_config_file,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
        adapter=adapter,
    )
    model = (build or build_model)(source)
    report = restore(model, source.tensors())
    refuse_untrained(model, report)
    untrained = frozenset(path.split("/")[0] for path in report.new)
    from keras_bert_impl.models.encoder import BertEncoder

    if isinstance(model, BertEncoder) and restore_pooler(model.pooler.weights, source.folder):
        untrained -= {"pooler"}
    return OpenedModel(model, source, untrained)


def build_model(source: ModelSource, dtype: Any = None) -> "keras.Model":
    """Builds the model that the weights' heads say, with fresh weights; see `open_model`."""
    from keras_bert_impl.models.classifier import BertClassifier
    from keras_bert_impl.models.encoder import BertEncoder
    from keras_bert_impl.models.pretrainer import BertPretrainer

    config, heads = source.config, heads_of(source)
    if "masked_lm" in heads:
        return BertPretrainer(config, dtype=dtype)
    if "classifier" not in heads:
        return BertEncoder(config, dtype=dtype)
    return BertClassifier(config, num_labels=len(source.labels), dtype=dtype)


def heads_of(source: ModelSource) -> tuple[str, ...]:
    """The heads that a model is opened with: of a masked-LM model, of a classifier, or none."""
    tensors = source.tensors()
    heads = _heads(source, tensors)
    check_sizes(tensors, source.config, heads)
    if "classifier" in heads:
        _check_labels(source)
    return heads


def lacks(source: ModelSource, part: str) -> bool:
    """Whether a model's weights lack some of its "pooler" or of a head."""
    names = encoder_names(source.config.num_hidden_layers)
    rows = [row for row in names if row.ours.startswith("pooler/")]
    tensors = source.tensors()
    return not all(map(tensors.find, rows if part == "pooler" else head_names(part)))


def _check_labels(source: ModelSource) -> None:
    config, where = source.config, source.checkpoint
    labels = len(source.labels)
    if labels > 1 and config.extra.get("problem_type") == "regression":
        fault = f"gives {labels} numbers (problem_type is regression)"
        raise UserError(f"{where}: {fault}; name a model that gives one, or a classifier.")


def _heads(source: ModelSource, tensors: TensorSource) -> tuple[str, ...]:
    of_masks = [tensors.find(row) is not None for row in head_names("masked_lm")]
    if all(of_masks) or (any(of_masks) and source.architecture in _WITH_MASKS):
        return ("masked_lm", "next_sentence")
    has_labels = tensors.find(head_names("classifier")[0]) is not None
    # google's configurations name no architecture: their programs for labels are classifiers.
    architecture = source.architecture or (_CLASSIFIER if has_labels else _ENCODER)
    if architecture == _CLASSIFIER and has_labels:
        return ("classifier",)
    if architecture != _ENCODER:
        fault = f"is a {architecture}, which cannot be opened here"
        others = "with a masked-LM head, a classifier or a bare encoder"
        raise UserError(f"{source.checkpoint}: {fault}; name a model {others}.")
    return ()
