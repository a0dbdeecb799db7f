"""Writing model directories, and where: nothing is replaced but an older one.

What we train is a Hugging Face directory, as theirs are.
"""

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.formats.peft_adapter import write_adapter_files
from keras_bert_impl.checkpoints.formats.run_checkpoint import weights_description
from keras_bert_impl.checkpoints.formats.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.model_card import CARD_FILE, edited_card, model_card, write_card
from keras_bert_impl.checkpoints.names import BILSTM, HEADS, all_names
from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.checkpoints.run_folder import AVERAGES, NAMES_FILE
from keras_bert_impl.checkpoints.sentence_modules import (
    SENTENCE_FILES,
    DenseWeights,
    SentenceSettings,
    write_sentence_files,
)
from keras_bert_impl.checkpoints.sources import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG_FILE,
    GOOGLE_CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    find_checkpoint,
    is_google_checkpoint,
)
from keras_bert_impl.checkpoints.text_files import foreign_tokenizer, read_casing
from keras_bert_impl.config import MASKED_LM_ENTRY, BertConfig, architecture_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath, followed, open_whole, real_path, whole_folder
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.models.adapters import AdapterConfig, adapters_of
from keras_bert_impl.models.head_settings import POOLER
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GRAPHS_FOLDER = "openvino_graphs"
"""Where OpenVINO's graphs of a model are kept next to it; made again for other weights."""

_MODEL_FILES = (
    *(CONFIG_FILE, WEIGHTS_FILE, VOCABULARY_FILE, TOKENIZER_FILE),
    *(CARD_FILE, GRAPHS_FOLDER),
)
_REPLACED = "so that nothing of yours is replaced"
_OTHER_OUTPUT = f"name another output, {_REPLACED}"
_ARCHITECTURES = {
    (): "BertModel",
    ("masked_lm", "next_sentence"): "BertForPreTraining",
    ("masked_lm",): "BertForMaskedLM",
    ("next_sentence",): "BertForNextSentencePrediction",
    ("classifier",): "BertForSequenceClassification",
    ("span",): "BertForQuestionAnswering",
    ("tagger",): "BertForTokenClassification",
    ("choice",): "BertForMultipleChoice",
}
_HEADS = {name: heads for heads, name in _ARCHITECTURES.items()} | {
    "BertLMHeadModel": ("masked_lm",)
}
# What is written is no longer so, or (the last three) never was.
_NOT_WRITTEN = (
    *("transformers_version", "torch_dtype", "num_labels"),
    *("tie_word_embeddings", "quantization_config", "auto_map"),
)
_LABEL_BIASES = ("classifier/dense/bias", "tagger/dense/bias")


def write_model_directory(
    folder: StrPath,
    model: Any,
    text: TextSettings,
    config: BertConfig | None = None,
    sentence: SentenceSettings | None = None,
) -> None:
    """Writes a model, its vocabulary and its casing as a Hugging Face directory.

    The folder appears when it is complete; an older model directory of that name is replaced.
    """
    if len(text.vocabulary) > model.config.vocab_size:
        raise UserError(
            f"{folder}: the vocabulary has {len(text.vocabulary)} tokens, but the model only knows "
            f"{model.config.vocab_size}; use the vocabulary that the model was made with."
        )
    variables = model.plain_weights()
    weights = {row.ours: variables[row.ours] for row in names_of(model) if row.ours in variables}
    write_tensors_directory(folder, weights, config or model.config, text, sentence)


def write_tensors_directory(
    folder: StrPath,
    weights: dict[str, np.ndarray],
    config: BertConfig,
    text: TextSettings,
    sentence: SentenceSettings | None = None,
    dense: DenseWeights | None = None,
) -> None:
    """Writes weights by our names (any type; it is kept) as a Hugging Face directory.

    `dense` are the weights of the dense layer of `sentence`, by default the pooler's.
    """
    older = check_folder(folder, () if sentence is None else SENTENCE_FILES)
    heads = heads_of(weights)
    tensors = {}
    for row in all_names(config.num_hidden_layers, (BILSTM, *heads)):
        if row.ours in weights:
            # A model without head writes bare names, as transformers' own BertModel does.
            name = row.hugging_face if heads else row.hugging_face.removeprefix("bert.")
            array = weights[row.ours]
            tensors[name] = array.T if row.hugging_face_transposed else array
    final = followed(folder)
    with whole_folder(final, replaces=older) as aside:
        write_safetensors(aside / WEIGHTS_FILE, tensors)
        _write_description(aside, weights, config, text)
        written = BertConfig.from_hugging_face(read_json_object(aside / CONFIG_FILE))
        card = model_card(written, text, sentences=sentence is not None)
        write_card(aside, edited_card(final) or card)
        if sentence is not None:
            _write_sentence(aside, sentence, config, weights, dense)


def _write_sentence(
    folder: Path,
    sentence: SentenceSettings,
    config: BertConfig,
    weights: Mapping[str, Any],
    dense: DenseWeights | None = None,
) -> None:
    if dense is None and sentence.pooling == POOLER:
        parts = (np.asarray(weights[f"pooler/dense/{name}"]) for name in ("kernel", "bias"))
        dense = DenseWeights(*parts)
    write_sentence_files(folder, sentence, config.hidden_size, dense, write_json)


def write_adapter(
    folder: Path,
    model: Any,
    text: TextSettings,
    how: AdapterConfig,
    base: str,
    sentence: SentenceSettings | None = None,
) -> None:
    """Writes the adapters of a model as a folder that PEFT opens, and that says what a model says.

    `base` is named as by `model_identity`.
    """
    rows = names_of(model)
    weights = {weight.path: weight for weight in model.weights}
    weights = {row.ours: weights[row.ours] for row in rows if row.ours in weights}
    older = check_adapter_folder(folder)
    with whole_folder(folder, replaces=older) as aside:
        write_adapter_files(aside, model, [row for row in rows if row.ours in weights], how, base)
        _write_description(aside, weights, model.config, text)
        if sentence is not None:
            _write_sentence(aside, sentence, model.config, weights)


def describe_checkpoint(
    folder: Path,
    state: Mapping[str, Sequence[Any]],
    model: Any,
    text: TextSettings,
    names: Sequence[str],
    sentence: SentenceSettings | None = None,
) -> None:
    """Writes what makes a run's checkpoint a model: all of a model directory but its weights.

    The model may be trained on meanwhile: what is written of weights is of the saved `state`.
    """
    variables = {variable.path: variable for variable in model.weights}
    weights = {row.ours: variables[row.ours] for row in names_of(model) if row.ours in variables}
    _write_description(folder, weights, model.config, text)
    scales = {path: one.scale for path, one in adapters_of(model).items()}
    write_json(folder / NAMES_FILE, weights_description(names, model.label_units, scales))
    if sentence is not None:
        saved = state.get(AVERAGES) or state["weights"]
        _write_sentence(folder, sentence, model.config, dict(zip(names, saved, strict=True)))


def _write_description(
    folder: Path, weights: Mapping[str, Any], config: BertConfig, text: TextSettings
) -> None:
    """Writes the files that say what weights are of; of them only shapes and types are needed."""
    text.vocabulary.write(folder / VOCABULARY_FILE)
    write_json(folder / TOKENIZER_FILE, tokenizer_config(config, text))
    write_json(folder / CONFIG_FILE, _model_config(config, heads_of(weights), weights, text))


def heads_of(paths: Any) -> tuple[str, ...]:
    """The heads among some weights' paths, in a fixed order."""
    return tuple(head for head in HEADS if any(path.startswith(f"{head}/") for path in paths))


def _model_config(
    config: BertConfig, heads: tuple[str, ...], weights: Mapping[str, Any], text: TextSettings
) -> dict[str, Any]:
    # A file that was read may name other heads than those that are written.
    architecture, not_written = architecture_of(config), list(_NOT_WRITTEN)
    if _HEADS.get(architecture) != heads:
        architecture = _ARCHITECTURES.get(heads, "BertModel")
        not_written.append("problem_type")
    if "masked_lm" not in heads:  # what says how it is computed goes with it
        not_written.append(MASKED_LM_ENTRY)
    extra = {name: one for name, one in config.extra.items() if name not in not_written}
    config = config.replace(extra={**extra, "architectures": [architecture]})
    values, labels = config.to_hugging_face(), _labels(weights)
    for key in ("id2label", "label2id"):
        named = values.get(key)
        stale = not isinstance(named, dict) or len(named) != labels
        if stale and values.pop(key, None) and labels and key == "id2label":
            values.pop("problem_type", None)  # that of the labels that are no longer there
    if labels and "id2label" not in values:
        values["id2label"] = {str(number): f"LABEL_{number}" for number in range(labels)}
        values["label2id"] = {f"LABEL_{number}": number for number in range(labels)}
    values["pad_token_id"] = text.vocabulary.pad_id  # where a program makes the mask from the ids
    values["dtype"] = str(weights["embeddings/token_embeddings"].dtype)
    return dict(sorted(values.items()))


def _labels(weights: Mapping[str, Any]) -> int:
    found = [weights[path] for path in _LABEL_BIASES if path in weights]
    return int(found[0].shape[0]) if found else 0


def tokenizer_config(config: BertConfig, text: TextSettings) -> dict[str, Any]:
    """The content of `tokenizer_config.json`."""
    return {
        "cls_token": "[CLS]",
        "do_basic_tokenize": True,
        "mask_token": "[MASK]",
        "model_max_length": config.max_position_embeddings,
        "never_split": None,
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer",
        "unk_token": "[UNK]",
        **text.as_json(),
    }


def write_json(path: Path, values: Any) -> None:
    """Writes a small file of JSON, its keys sorted."""
    with open_whole(path, "wb") as file:
        file.write(_json_file(values))


def _json_file(values: dict[str, Any]) -> bytes:
    return f"{json_text(values, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def check_folder(folder: StrPath, also: Collection[str] = ()) -> bool:
    """Sees that a model directory may appear at a path; see `check_replaced`."""
    marks, known = (CONFIG_FILE, WEIGHTS_FILE), (*_MODEL_FILES, *also)
    return check_replaced(Path(folder), "model directory", marks, known)


def check_adapter_folder(folder: Path) -> bool:
    """Sees that an adapter may appear at a path; see `check_replaced`."""
    marks = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
    known = (*marks, CONFIG_FILE, VOCABULARY_FILE, TOKENIZER_FILE, *SENTENCE_FILES, GRAPHS_FOLDER)
    return check_replaced(folder, "adapter", marks, known)


def check_replaced(
    folder: Path, kind: str, marks: Iterable[str], known: Collection[str], output: str = "output"
) -> bool:
    """Sees that nothing is at a path, or an older one of a kind: with the files `marks`.

    Tells whether something is there to replace: what appears afterwards is none of it.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return folder.is_symlink()
    if not all((folder / name).is_file() for name in marks):
        raise UserError(f"{folder}: exists and is no {kind}; name another {output}, {_REPLACED}.")
    check_nothing_else(folder, known)
    return True


def check_nothing_else(folder: Path, known: Collection[str]) -> None:
    """Sees that a folder that will be replaced holds nothing but what is made anew."""
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if others:
        raise UserError(f"{folder}: holds {others[0]}, which would be lost; {_OTHER_OUTPUT}.")


def check_apart(source: StrPath, output: StrPath, files: Iterable[Path] = ()) -> None:
    """Sees that writing a checkpoint replaces none that it was made of: of an adapter, its base."""
    for part in (source, *files):
        read = real_path(find_checkpoint(part))
        if real_path(Path(output)) in (read, *read.parents):
            fault = f"the input {part} lies there and would be replaced"
            raise UserError(f"{output}: {fault}; name another output.")


def files_beside(
    prefix: Path, config: BertConfig, text: TextSettings, foreign: str | None
) -> dict[Path, bytes]:
    """What is still to be written beside a TF1 checkpoint; what is there must say the same.

    `foreign` names the tokenizer where BERT's own rules do not cut the text.
    """
    cutting = {"tokenizer_class": foreign} if foreign else {}
    files = {
        prefix.parent / VOCABULARY_FILE: text.vocabulary.as_file(),
        prefix.parent / GOOGLE_CONFIG_FILE: f"{json_text(config.to_google(), indent=2)}\n".encode(),
        prefix.parent / TOKENIZER_FILE: _json_file({**tokenizer_config(config, text), **cutting}),
    }
    missing = {path: content for path, content in files.items() if not path.exists()}
    for path in files.keys() - missing.keys():
        if not _says_the_same(path, config, text, foreign):
            raise UserError(f"{path}: exists and does not describe this model; {_OTHER_OUTPUT}.")
    # google's archives have no file that says the casing: where it is missing, it is added.
    lost = [path.name for path in missing if path.name != TOKENIZER_FILE]
    if lost and is_google_checkpoint(prefix):
        raise UserError(f"{prefix}: exists, without its {lost[0]} beside it; {_OTHER_OUTPUT}.")
    return missing


def _says_the_same(path: Path, config: BertConfig, text: TextSettings, foreign: str | None) -> bool:
    """Whether a file beside a TF1 checkpoint is read as what would be written there."""
    with contextlib.suppress(UserError):
        if path.name == VOCABULARY_FILE:
            return Vocabulary.load(path) == text.vocabulary
        if path.name == GOOGLE_CONFIG_FILE:
            return BertConfig.from_google_file(path).to_google() == config.to_google()
        named = foreign_tokenizer(path.parent)
        casing = read_casing(path.parent)
        same = casing.do_lower_case is not None and casing.settings(text.vocabulary) == text
        return same and (named and named[1]) == foreign
    return False
