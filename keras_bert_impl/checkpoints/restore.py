"""Filling a model from any checkpoint, with a report that leaves nothing out.

A configuration is a small file that says any size: only the weights' own file bears it out.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints import sources
from keras_bert_impl.checkpoints.formats import google_tf1, keras_hub, tf_models, transformers_tf
from keras_bert_impl.checkpoints.formats.hugging_face import HuggingFaceSource
from keras_bert_impl.checkpoints.formats.run_checkpoint import RunCheckpointSource
from keras_bert_impl.checkpoints.names import BILSTM, HEADS, Names, all_names, head_names
from keras_bert_impl.checkpoints.run_folder import is_run_checkpoint
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath

_TIED = {  # by the ends of the names
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
_BLOCKS = re.compile(r".*?encoder[./]layer[._](?=_?\d)")  # no layer_with_weights-0 of Keras
_UNREAD = "not part of this model"
_LABEL_HEADS = ("next_sentence", "classifier", "tagger", "choice", "span")
_OTHER_CONFIGURATION = "name the configuration that belongs to the checkpoint"
Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RestoreReport:
    """The outcome of restoring weights."""

    location: str
    loaded: tuple[str, ...]
    new: tuple[str, ...]
    ignored: tuple[tuple[str, str], ...]

    def table(self) -> str:
        """The report as a short table, a line a group.

        Example:
            >>> report = RestoreReport(
            ...     location="bert",
            ...     loaded=("layer_0/output/bias", "layer_0/output/kernel"),
            ...     new=("classifier/dense/bias",),
            ...     ignored=(("global_step", "training state"),),
            ... )
            >>> print(report.table())
            loaded from bert
              loaded             2  layer_0 (2)
              newly initialised  1  classifier/dense/bias
              ignored            1  training state (1): global_step
        """
        parts = Counter(path.split("/")[0] for path in self.loaded)
        loaded = _shorten([f"{part} ({count})" for part, count in parts.items()])
        reasons: dict[str, list[str]] = {}
        for name, reason in self.ignored:
            reasons.setdefault(reason, []).append(name)
        lines = [
            f"loaded from {self.location}",
            f"  loaded             {len(self.loaded)}  {loaded}",
            f"  newly initialised  {len(self.new)}  {_shorten(self.new)}",
        ]
        lines += [
            f"  ignored            {len(names)}  {reason} ({len(names)}): {_shorten(names)}"
            for reason, names in reasons.items()
        ] or ["  ignored            0"]
        return "\n".join(line.rstrip() for line in lines)


def open_source(checkpoint: StrPath) -> sources.TensorSource:
    """Opens a model directory, a TF1 checkpoint or a checkpoint of a run."""
    found = sources.find_checkpoint(checkpoint)
    if sources.is_google_checkpoint(found):
        objects = google_tf1.is_of_objects(found)
        return tf_models.open_objects(found) if objects else google_tf1.GoogleSource(found)
    if is_run_checkpoint(found):
        return RunCheckpointSource(found)
    if found.is_dir():
        return _open_folder(found)
    fault = "is neither a model directory nor the prefix of a TF1 checkpoint"
    remedy = "check the path (a prefix is the path without '.index')"
    raise UserError(f"{checkpoint}: {fault}; {remedy}.")


def _open_folder(folder: Path) -> sources.TensorSource:
    """Opens a folder by the weights that lie in it; safetensors come first."""
    there = {name for name in sources.WHOLE_WEIGHTS if (folder / name).exists()}
    if there & {sources.WEIGHTS_FILE, sources.INDEX_FILE} or not there:
        source = HuggingFaceSource(folder)
        is_theirs = transformers_tf.is_tensorflows(source.shapes)
        return transformers_tf.translated(source) if is_theirs else source
    if there & {sources.TF_WEIGHTS_FILE, sources.TF_INDEX_FILE}:
        return transformers_tf.open_hdf5(folder)
    return keras_hub.open_preset(folder)


def restore(model: Any, checkpoint: StrPath | sources.TensorSource) -> RestoreReport:
    """Fills a model's weights from a checkpoint, which may be open."""
    source = checkpoint if isinstance(checkpoint, sources.TensorSource) else open_source(checkpoint)
    variables = {variable.path: variable for variable in model.weights}
    rows = [row for row in names_of(model) if row.ours in variables]
    found = {row.ours: hit for row in rows if (hit := source.find(row))}
    check_encoder(source, rows, found)
    for path, hit in found.items():
        shape = sources.weight_shape(source, hit)
        wanted = tuple(variables[path].shape)
        _check_shape(source, hit.name, shape, wanted, f"the model's {path} needs")
    if any(row.part == "masked_lm" for row in rows):
        check_tied_decoder(source)
    from keras_bert_impl.models.base import ConfiguredModel  # which restores its weights by this

    units = model.label_units if isinstance(model, ConfiguredModel) else None
    for path, hit in found.items():
        weight = sources.read_weight(source, hit).astype(variables[path].dtype)
        variables[path].assign(weight if units is None else units.unfold(path, weight))
    left = source.ignored({hit.name for hit in found.values()}, _UNREAD)
    new = sorted(variables.keys() - found.keys())
    return RestoreReport(source.location, tuple(sorted(found)), tuple(new), left)


def restore_merged(model: Any, folder: Path) -> None:
    """Gives a model that was trained the weights of its directory, which has adapters merged."""
    new = restore(model, folder).new
    for weight in model.weights:
        if weight.path in new and weight.path.endswith("/lora_b"):
            weight.assign(np.zeros(weight.shape, weight.dtype))


def names_of(model: Any) -> list[Names]:
    """The names of all weights of a model, as its paths say."""
    parts = {weight.path.split("/")[0] for weight in model.weights}
    if "embeddings" not in parts:
        fault = f"the model was made inside of another layer or name scope ({min(parts)}), by which"
        raise UserError(f"{fault} its weights are called; make it outside, and hand it over.")
    heads = tuple(part for part in (BILSTM, *HEADS) if part in parts)
    return all_names(model.config.num_hidden_layers, heads)


def refuse_untrained(
    model: Any,
    report: RestoreReport,
    what: str = "model",
    remedy: str = "name a fine-tuned model directory",
) -> None:
    """Refuses a checkpoint that lacks weights which a model reads: it would answer by random ones.

    Encoders and pre-trained models are not looked at: what they lack is known by its outputs.
    """
    parts = {row.part for row in names_of(model)} - {"encoder", "pooler"}
    missing = [path for path in report.new if model.reads_pooler or not path.startswith("pooler/")]
    if missing and parts and "masked_lm" not in parts:
        fault = f"holds no trained {what} (its {missing[0]} is missing)"
        raise UserError(f"{report.location}: {fault}; {remedy}.")


def check_weights(weights: Mapping[str, Any], origin: object) -> None:
    """Refuses weights that are NaN or infinite, before they are written in another form."""
    for path, weight in weights.items():
        if not np.isfinite(np.asarray(weight)).all():
            fault = f"its weights {path} hold NaN or infinite numbers"
            raise UserError(f"{origin}: {fault}; take another checkpoint.")


def check_encoder(
    source: sources.TensorSource, rows: list[Names], found: Mapping[str, sources.FoundTensor]
) -> None:
    """Sees that a checkpoint holds every weight of the encoder (the pooler may be missing)."""
    missing = [row.ours for row in rows if row.part == "encoder" and row.ours not in found]
    if missing:
        fault = f"lacks {len(missing)} of the encoder's weights, the first is {missing[0]}"
        remedy = "name the checkpoint of a BERT with as many blocks as the configuration says"
        raise UserError(f"{source.location}: {fault}; {remedy}.")


def check_tied_decoder(source: sources.TensorSource) -> None:
    """Sees that a decoder that is written out is the token table, as every BERT's is."""
    names = source.names()
    for decoder_end, twin_end in _TIED.items():
        decoder = next((name for name in names if name.endswith(decoder_end)), None)
        twin = next((name for name in names if name.endswith(twin_end)), None)
        if decoder is None or twin is None:
            continue
        if not np.array_equal(source.read(decoder), source.read(twin)):
            raise UserError(
                f"{source.location}: {decoder} differs from {twin}; a decoder that is not "
                "tied to the token embeddings cannot be kept here; tie it where it was trained."
            )


def _check_blocks(source: sources.TensorSource, names: set[str]) -> None:
    """Sees that nothing within the blocks is left out: without it the model is another one."""
    places = tuple(one[0] for one in map(_BLOCKS.match, names) if one)
    for name, reason in source.ignored(names, _UNREAD):
        is_slot = name.rpartition("/")[0] in names
        if reason == _UNREAD and name.startswith(places) and not is_slot:
            fault = f"holds {name}, which no block of the configuration has"
            raise UserError(f"{source.location}: {fault}; {_OTHER_CONFIGURATION}.")


def _check_shape(
    source: sources.TensorSource,
    name: str,
    shape: Shape,
    wanted: Shape,
    says: str,
    remedy: str = _OTHER_CONFIGURATION,
) -> None:
    if shape != wanted:
        fault = f"{name} has the shape {list(shape)}, but {says} {list(wanted)}"
        raise UserError(f"{source.location}: {fault}; {remedy}.")


def _shorten(words: Any, most: int = 6) -> str:
    words = list(words)
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def check_sizes(
    source: sources.TensorSource, config: BertConfig, heads: Sequence[str] = ()
) -> dict[str, sources.FoundTensor]:
    """Finds the weights of an encoder and of some heads, and holds their shapes against a config.

    A head of `heads` may be missing as a whole. The number of a head's labels is free, but its two
    weights must agree on it.
    """
    tensors = len(source.names())
    if config.num_hidden_layers > tensors:
        fault = f"holds {tensors} tensors, too few for the {config.num_hidden_layers} blocks"
        raise UserError(f"{source.location}: {fault} of the configuration; {_OTHER_CONFIGURATION}.")
    if others := {*source.heads} - {config.num_attention_heads}:
        fault = f"has {min(others)} attention heads, the configuration {config.num_attention_heads}"
        raise UserError(f"{source.location}: {fault}; {_OTHER_CONFIGURATION}.")
    rows = all_names(config.num_hidden_layers, (BILSTM, *heads))
    found = {row.ours: hit for row in rows if (hit := source.find(row))}
    check_encoder(source, rows, found)
    _check_blocks(source, {hit.name for hit in found.values()})
    for head in heads:
        lost = [row for row in head_names(head) if row.ours not in found]
        if lost and len(lost) < len(head_names(head)):
            fault = f"holds a head without its {lost[0].ours}"
            raise UserError(f"{source.location}: {fault}; download the checkpoint again.")
    shapes = {path: sources.weight_shape(source, hit) for path, hit in found.items()}
    for path, shape in shapes.items():
        wanted, why = _wanted(path, config), ("the configuration says", _OTHER_CONFIGURATION)
        if path.split("/")[0] in _LABEL_HEADS:
            layer, part = path.rsplit("/", 1)
            both = (shapes.get(f"{layer}/bias"), shapes.get(f"{layer}/kernel"))
            labels = next((one[-1] for one in both if one), 0)
            wanted = (config.hidden_size, labels) if part == "kernel" else (labels,)
            why = (f"a head of {labels} labels needs", "download the checkpoint again")
        _check_shape(source, path, shape, wanted, *why)
    return found


def _wanted(path: str, config: BertConfig) -> Shape:
    h, wide = config.hidden_size, config.intermediate_size
    tables = {
        "embeddings/token_embeddings": (config.vocab_size, h),
        "embeddings/segment_embeddings": (config.type_vocab_size, h),
        "embeddings/position_embeddings": (config.max_position_embeddings, h),
        "masked_lm/output_bias": (config.vocab_size,),
    }
    if path in tables:
        return tables[path]
    layer, part = path.rsplit("/", 1)
    if layer.startswith("bilstm/"):  # four gates of half the width
        inputs = {"kernel": (h,), "recurrent_kernel": (h // 2,), "bias": ()}[part]
        return (*inputs, 4 * (h // 2))
    width = wide if layer.endswith("/intermediate") else h
    if part != "kernel":
        return (width,)
    return (wide if layer.startswith("layer_") and layer.endswith("/output") else h, width)
