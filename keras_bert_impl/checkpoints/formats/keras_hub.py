"""KerasHub's presets of BERT: folders of JSON and Keras weights, read and written.

Two things are fixed in KerasHub's code that its files do not say: the encoder's GELU is the tanh
form, and the head of masked words has the erf form and a LayerNorm with an epsilon of 1e-5.
"""

import importlib.metadata
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from keras_bert_impl.checkpoints.formats import hdf5_file
from keras_bert_impl.checkpoints.names import BILSTM, HEADS, all_names
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    KERAS_WEIGHTS_FILE,
    TranslatedSource,
)
from keras_bert_impl.config import MASKED_LM_ENTRY, BertConfig
from keras_bert_impl.errors import UserError, reading, shown
from keras_bert_impl.files import followed, is_named, make_folder, open_whole, whole_folder
from keras_bert_impl.json_files import json_text, read_json_object, typed
from keras_bert_impl.models.head_settings import CLS, MEAN, POOLER, pooling_of
from keras_bert_impl.options import Rules
from keras_bert_impl.tokenization.text_settings import LONGEST_WORD, Casing, TextSettings

_Length = Annotated[int, Rules(sentence="", at_least=3)]
_LOGGER = logging.getLogger(__name__)

TASK_FILE, TASK_WEIGHTS_FILE = "task.json", "task.weights.h5"
PREPROCESSOR_FILE, METADATA_FILE = "preprocessor.json", "metadata.json"
VOCABULARY_PATH = "assets/tokenizer/vocabulary.txt"

MASKED_LM = {"hidden_act": "gelu_erf", "layer_norm_eps": 1e-5}
"""What the head of masked words computes in KerasHub, whatever the encoder does."""

_PACKAGES = ("keras_hub", "keras_nlp")  # the older name
_AGAIN = "save the preset again"
_CONFIG = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
_CLASSIFIERS = ("BertTextClassifier", "BertClassifier")
_TASKS = {
    "BertTextClassifier": "BertForSequenceClassification",
    "BertClassifier": "BertForSequenceClassification",  # its name before 0.17
    "BertMaskedLM": "BertForMaskedLM",
    "BertTextEmbedder": "BertModel",
}
# Layers are numbered by class in the order in which the model made them.
_LAYERS = {
    "reversible_embedding": "bert.embeddings.word_embeddings",
    "position_embedding": "bert.embeddings.position_embeddings",
    "embedding": "bert.embeddings.token_type_embeddings",
    "layer_normalization": "bert.embeddings.LayerNorm",
    "dense": "bert.pooler.dense",
}
_BLOCK = {
    "_self_attention_layer/query_dense": "attention.self.query",
    "_self_attention_layer/key_dense": "attention.self.key",
    "_self_attention_layer/value_dense": "attention.self.value",
    "_self_attention_layer/output_dense": "attention.output.dense",
    "_self_attention_layer_norm": "attention.output.LayerNorm",
    "_feedforward_intermediate_dense": "intermediate.dense",
    "_feedforward_output_dense": "output.dense",
    "_feedforward_layer_norm": "output.LayerNorm",
}
_HEADS = {
    "BertForSequenceClassification": {"dense": "classifier"},
    "BertForMaskedLM": {
        "masked_lm_head/_intermediate_dense": "cls.predictions.transform.dense",
        "masked_lm_head/_intermediate_layer_norm": "cls.predictions.transform.LayerNorm",
    },
}


def is_preset(values: Mapping[str, Any]) -> bool:
    """Whether the content of a `config.json` is KerasHub's."""
    return str(values.get("registered_name", "")).startswith(tuple(f"{p}>" for p in _PACKAGES))


def is_preset_folder(folder: Path) -> bool:
    """Whether a folder is a preset of KerasHub."""
    path = folder / CONFIG_FILE
    return is_named(path) and is_preset(read_json_object(path))


def read_config(folder: Path) -> BertConfig:
    """The configuration of a preset: its encoder, and the task in `task.json`."""
    path = folder / CONFIG_FILE
    values = _described(path, ("BertBackbone",))[1]
    with reading(path, "a preset of BERT", _AGAIN):
        given = {ours: values[theirs] for ours, theirs in _CONFIG.items()}
    task, about = _task(folder)
    extra: dict[str, Any] = {}
    if task:
        extra["architectures"] = [_TASKS[task]]
    if task in _CLASSIFIERS:
        activation = about.get("activation")
        if activation == "sigmoid":  # each label is a question of its own
            extra["problem_type"] = "multi_label_classification"
        elif activation not in (None, "linear", "softmax"):
            fault = f"activation is {shown(activation)}, which no classifier here has"
            remedy = "name a preset with linear, softmax, sigmoid or none"
            raise UserError(f"{folder / TASK_FILE}: {fault}; {remedy}.")
    if task == "BertMaskedLM":
        extra[MASKED_LM_ENTRY] = MASKED_LM
    dropout = given["hidden_dropout_prob"]
    entries = {**given, "attention_probs_dropout_prob": dropout, "hidden_act": "gelu_tanh"}
    return BertConfig.from_google({**entries, **extra}, str(path))


def read_casing(folder: Path) -> Casing:
    """How a preset's text is treated."""
    path = folder / FAST_TOKENIZER_FILE
    values = _described(path, ("BertTokenizer",))[1]
    usual = {"split": True, "suffix_indicator": "##", "oov_token": "[UNK]"}
    for name, value in {**usual, "special_tokens_in_strings": False}.items():
        if values.get(name, value) != value:
            fault = f"{name} is {shown(values[name])}, by which BERT's own rules do not cut text"
            raise UserError(f"{path}: {fault}; name a preset with {shown(value)}.")
    names = ("lowercase", "strip_accents")
    return Casing(*(typed(values.get(one, False), bool, f"{path}: {one}") for one in names))


def read_pooling(folder: Path) -> tuple[str, bool] | None:
    """Pooling and whether vectors are scaled to length 1; None where it is no text embedder."""
    task, values = _task(folder)
    if task != "BertTextEmbedder":
        return None
    pooling = values.get("pooling_mode")
    if pooling not in (MEAN, CLS):
        fault = f"pools by {shown(pooling)}, which does not exist here"
        raise UserError(f"{folder / TASK_FILE}: {fault}; name one with the mean or with [CLS].")
    return str(pooling), values.get("normalize") is True


def read_sequence_length(folder: Path) -> int | None:
    """The length that a preset's preprocessor packs texts to."""
    path = folder / PREPROCESSOR_FILE
    if not path.exists():
        return None
    values = typed(read_json_object(path).get("config"), dict, f"{path}: config", _AGAIN)
    return typed(values.get("sequence_length"), _Length | None, f"{path}: sequence_length", _AGAIN)


def open_preset(folder: Path) -> TranslatedSource:
    """Opens the weights of a preset: the encoder's, and those of its task."""
    config, prefix = read_config(folder), f"{TASK_WEIGHTS_FILE}:"
    encoder, head = folder / KERAS_WEIGHTS_FILE, folder / TASK_WEIGHTS_FILE
    stored, files = hdf5_file.read_hdf5_shapes(encoder), [encoder]
    names = _encoder_paths(config.num_hidden_layers)
    if head.exists():
        files.append(head)
        stored |= {prefix + one: x for one, x in hdf5_file.read_hdf5_shapes(head).items()}
        of_head = _head_paths(config.extra.get("architectures", [""])[0])
        names |= {prefix + name: theirs for name, theirs in of_head.items()}
    translated = {theirs: name for name, theirs in names.items()}

    def read(name: str) -> np.ndarray:
        if name.startswith(prefix):
            return hdf5_file.read_hdf5_tensor(head, name.removeprefix(prefix))
        return hdf5_file.read_hdf5_tensor(encoder, name)

    return TranslatedSource(str(folder), files, stored, translated, read)


def _described(path: Path, known: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """The class that a file describes, and its configuration; no class is imported."""
    values = read_json_object(path)
    kind = typed(values.get("class_name"), str, f"{path}: class_name", _AGAIN)
    if kind not in known:
        wanted = f"only {', '.join(known)} can be opened"
        raise UserError(f"{path}: is a preset of {shown(kind)[1:-1]}; {wanted}.")
    return kind, typed(values.get("config"), dict, f"{path}: config", _AGAIN)


def _task(folder: Path) -> tuple[str, dict[str, Any]]:
    path = folder / TASK_FILE
    return _described(path, tuple(_TASKS)) if path.exists() else ("", {})


def _variables(layers: Mapping[str, str], prefix: str = "layers/") -> dict[str, str]:
    """Hugging Face's names of layers' first two variables, by their paths in a file."""
    return {
        f"{prefix}{layer}/vars/{number}": f"{theirs}.{part}"
        for layer, theirs in layers.items()
        for number, part in enumerate(("weight", "bias"))
    }


def _encoder_paths(blocks: int) -> dict[str, str]:
    found = _variables(_LAYERS)
    for number in range(blocks):
        block = f"layers/transformer_encoder{f'_{number}' if number else ''}/"
        names = {layer: f"bert.encoder.layer.{number}.{name}" for layer, name in _BLOCK.items()}
        found |= _variables(names, block)
    return found


def _head_paths(architecture: str) -> dict[str, str]:
    found = _variables(_HEADS.get(architecture, {}))
    if architecture == "BertForMaskedLM":
        found["layers/masked_lm_head/vars/0"] = "cls.predictions.bias"
    return found


def write_preset(
    folder: Path,
    weights: Mapping[str, np.ndarray],
    config: BertConfig,
    text: TextSettings,
    max_seq_length: int,
) -> None:
    """Writes weights by our names as a preset: an encoder, a classifier or masked words."""
    architecture = _check_writable(folder, weights, config)
    lost = [*text.as_json().keys() - {"do_lower_case", "strip_accents"}]
    if lost and (lost != [LONGEST_WORD] or text.longest_word != 100):  # which is KerasHub's own
        what = f"{', '.join(sorted(lost))}: some texts become other tokens there"
        _LOGGER.warning(f"{folder}: KerasHub's tokenizer has no place for {what}.")
    files = _json_files(weights, config, text, architecture, max_seq_length)
    arrays = {
        row.hugging_face: weights[row.ours]
        for row in all_names(config.num_hidden_layers, ("classifier", "masked_lm"))
        if row.ours in weights
    }
    with whole_folder(followed(folder), replaces=False) as aside:
        for name, values in files.items():
            with open_whole(aside / name) as file:
                file.write(json_text(values, indent=4) + "\n")
        make_folder(aside / Path(VOCABULARY_PATH).parent)
        text.vocabulary.write(aside / VOCABULARY_PATH)
        encoder = _encoder_paths(config.num_hidden_layers)
        _write_weights(aside / KERAS_WEIGHTS_FILE, arrays, encoder, config)
        if architecture:
            _write_weights(aside / TASK_WEIGHTS_FILE, arrays, _head_paths(architecture), config)


def _check_writable(folder: Path, weights: Mapping[str, Any], config: BertConfig) -> str:
    """The architecture of the task that KerasHub has for some weights; "" for an encoder."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: exists; name another output, so that nothing is replaced.")
    heads = {name.split("/")[0] for name in weights} & {*HEADS, BILSTM}
    known = {"classifier": "BertForSequenceClassification", "masked_lm": "BertForMaskedLM"}
    others = sorted(heads - {*known, "next_sentence"})
    if "classifier" in heads and (pooling := pooling_of(config)) != POOLER:
        others.append(f"a classifier over {pooling}")
    if others or config.causal or config.anticausal or "pooler/dense/kernel" not in weights:
        what = others[0] if others else "attention in one direction or an encoder without pooler"
        fault = f"KerasHub's BERT has no place for {what}"
        raise UserError(f"{folder}: {fault}; give `output_format=hugging_face`.")
    if config.hidden_act != "gelu_tanh" or config.layer_norm_eps != 1e-12:
        _LOGGER.warning(
            f"{folder}: KerasHub computes the tanh form of GELU and an epsilon of 1e-12, the model "
            f"has {config.hidden_act} and {config.layer_norm_eps}: its outputs will differ from "
            "the third digit on."
        )
    if "masked_lm" in heads and config.extra.get(MASKED_LM_ENTRY) != MASKED_LM:
        _LOGGER.warning(
            f"{folder}: KerasHub computes the head of masked words with the erf form of GELU and "
            "an epsilon of 1e-5: its scores will differ from the third digit on."
        )
    if "next_sentence" in heads:
        _LOGGER.warning(f"{folder}: KerasHub has no next sentence prediction; it is left out.")
    return next((name for head, name in known.items() if head in heads), "")


def _json_files(
    weights: Mapping[str, np.ndarray],
    config: BertConfig,
    text: TextSettings,
    architecture: str,
    max_seq_length: int,
) -> dict[str, Any]:
    """The files that describe a preset, by their names."""
    values = {theirs: getattr(config, ours) for ours, theirs in _CONFIG.items()}
    backbone = _serialized("BertBackbone", values)
    cutting = {"lowercase": text.do_lower_case, "strip_accents": text.removes_accents}
    tokenizer = _serialized("BertTokenizer", {**cutting, "config_file": FAST_TOKENIZER_FILE})
    encoder = [array for name, array in weights.items() if name.split("/")[0] not in HEADS]
    files: dict[str, Any] = {
        CONFIG_FILE: backbone,
        FAST_TOKENIZER_FILE: tokenizer,
        METADATA_FILE: {
            "keras_version": importlib.metadata.version("keras"),
            "keras_hub_version": "0.32.0",  # the form of these files
            "parameter_count": sum(array.size for array in encoder),
            "tasks": ["MaskedLM", "TextClassifier", "TextEmbedder"],
        },
    }
    if architecture:
        kind = next(kind for kind, name in _TASKS.items() if name == architecture)
        packing = {"config_file": PREPROCESSOR_FILE, "sequence_length": max_seq_length}
        preprocessor = _serialized(f"{kind}Preprocessor", {"tokenizer": tokenizer, **packing})
        own: dict[str, Any] = {"backbone": backbone, "preprocessor": preprocessor}
        if kind == "BertTextClassifier":
            labels = len(weights["classifier/dense/bias"])
            own |= {"num_classes": labels, "dropout": config.hidden_dropout_prob}
            if config.extra.get("problem_type") == "multi_label_classification":
                own["activation"] = "sigmoid"
        files |= {PREPROCESSOR_FILE: preprocessor, TASK_FILE: _serialized(kind, own)}
    return files


def _serialized(kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """An object of KerasHub as Keras writes it."""
    module = re.sub("(?<=[a-z])(?=[A-Z])|(?<=LM)(?=P)", "_", kind).lower()
    return {
        "module": f"keras_hub.src.models.bert.{module}",
        "class_name": kind,
        "config": config,
        "registered_name": f"keras_hub>{kind}",
    }


def _write_weights(
    path: Path, arrays: Mapping[str, np.ndarray], names: Mapping[str, str], config: BertConfig
) -> None:
    heads = config.num_attention_heads
    by_heads = (heads, config.hidden_size // heads)
    tensors = {}
    for place, name in names.items():
        if (array := arrays.get(name)) is None:
            continue  # a table has no bias
        if ".attention.self." in name:
            array = array.reshape(*array.shape[:-1], *by_heads)
        elif name.endswith("attention.output.dense.weight"):
            array = array.reshape(*by_heads, -1)
        tensors[place] = array
    hdf5_file.write_hdf5(path, tensors)
