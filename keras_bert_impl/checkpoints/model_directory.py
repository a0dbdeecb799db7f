"""Model directories: what we train is a Hugging Face directory, and theirs opens here."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.destination import check_folder
from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.checkpoints.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    find_checkpoint,
)
from keras_bert_impl.config import BertConfig, read_json_object
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole, whole_folder
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary, read_tokenizer_json

_TOKENIZERS = (  # those that cut text by BERT's rules, or leave them to tokenizer.json
    "BertTokenizer",
    "BertTokenizerFast",
    "DistilBertTokenizer",
    "DistilBertTokenizerFast",
    "ElectraTokenizer",
    "ElectraTokenizerFast",
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
)
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


def write_model_directory(
    folder: str | os.PathLike[str],
    model: Any,
    text: TextSettings,
) -> None:
    """Writes a model, its vocabulary and its casing as a Hugging Face directory.

    The folder appears when it is complete; an older model directory of that name is replaced.

    Args:
        folder: where to.
        model: one of this project's models.
        text: the vocabulary, the casing and the accents that the model was trained with.

    Raises:
        UserError: the vocabulary is larger than the model's token table, the folder holds
            something else than a model directory, or it cannot be written.
    """
    if len(text.vocabulary) > model.config.vocab_size:
        raise UserError(
            f"{folder}: the vocabulary has {len(text.vocabulary)} tokens, but the model only knows "
            f"{model.config.vocab_size}; use the vocabulary that the model was made with."
        )
    variables = {variable.path: np.asarray(variable) for variable in model.weights}
    write_tensors_directory(
        folder,
        {row.ours: variables[row.ours] for row in names_of(model) if row.ours in variables},
        model.config,
        text,
    )


def write_tensors_directory(
    folder: str | os.PathLike[str],
    weights: dict[str, np.ndarray],
    config: BertConfig,
    text: TextSettings,
) -> None:
    """Writes weights by our names (any type; it is kept) as a Hugging Face directory.

    Args:
        folder: where to.
        weights: arrays by our paths, shaped as our variables are.
        config: the model's configuration.
        text: the vocabulary, the casing and the accents.

    Raises:
        UserError: the folder holds something else than a model directory, or cannot be written.
    """
    from keras_bert_impl.checkpoints.names import all_names

    check_folder(folder)
    heads = heads_of(weights)
    tensors = {}
    for row in all_names(config.num_hidden_layers, heads):
        if row.ours in weights:
            # A model without head writes bare names, as transformers' own BertModel does.
            name = row.hugging_face if heads else row.hugging_face.removeprefix("bert.")
            array = weights[row.ours]
            tensors[name] = array.T if row.hugging_face_turned else array
    with whole_folder(folder) as aside:
        write_safetensors(aside / WEIGHTS_FILE, tensors)
        text.vocabulary.write(aside / VOCABULARY_FILE)
        _write_json(aside / TOKENIZER_FILE, _tokenizer_config(config, text))
        _write_json(aside / CONFIG_FILE, _model_config(config, heads, weights))


def heads_of(paths: Any) -> tuple[str, ...]:
    """The heads among some weights' paths, in a fixed order.

    Example:
        >>> heads_of(["layer_0/output/bias", "classifier/dense/bias"])
        ('classifier',)
    """
    from keras_bert_impl.checkpoints.restore import HEADS

    return tuple(head for head in HEADS if any(path.startswith(f"{head}/") for path in paths))


def architecture_of(config: BertConfig) -> str:
    """The model that a configuration names first; "" if it names none.

    Example:
        >>> architecture_of(BertConfig(vocab_size=9, extra={"architectures": ["BertModel"]}))
        'BertModel'
    """
    names = config.extra.get("architectures")
    if isinstance(names, list) and names:
        return str(names[0])
    return names if isinstance(names, str) else ""


def label_names(config: BertConfig) -> dict[str, str]:
    """The names of a head's labels by their numbers, as a configuration has them; {} if none.

    Example:
        >>> label_names(BertConfig(vocab_size=9, extra={"id2label": {"0": "no", "1": "yes"}}))
        {'0': 'no', '1': 'yes'}
    """
    names = config.extra.get("id2label")
    return {str(k): str(v) for k, v in names.items()} if isinstance(names, dict) else {}


def read_config(folder: str | os.PathLike[str]) -> BertConfig:
    """Reads a model directory's configuration.

    Raises:
        UserError: the folder or its config.json is missing, or holds no BERT.
    """
    path = Path(folder) / CONFIG_FILE
    if not Path(folder).is_dir():
        raise UserError(f"{folder}: no such model directory; check the path.")
    if not path.exists():
        _refuse_tf1(folder)
    return BertConfig.from_hugging_face(read_json_object(path), str(path))


def read_text_settings(
    folder: str | os.PathLike[str], vocab_file: str | os.PathLike[str] | None = None
) -> TextSettings:
    """A model directory's vocabulary and how its text is cased.

    `tokenizer_config.json` and `vocab.txt` come first, `tokenizer.json` where they are silent.

    Args:
        folder: the model directory.
        vocab_file: another vocabulary than the directory's own.

    Raises:
        UserError: a file is missing, none of them says whether text is lower-cased, or text is cut
            by other rules than BERT's.
    """
    path = Path(folder) / TOKENIZER_FILE
    vocab_file = vocab_file or find_vocabulary(folder)
    if not path.exists() and not (Path(folder) / FAST_TOKENIZER_FILE).exists():
        _refuse_tf1(folder)
    check_tokenizer_class(folder)
    lower, accents = read_casing(folder)
    if lower is None:
        raise UserError(
            f'{path}: does not say whether text is lower-cased; add "do_lower_case": true or false.'
        )
    return TextSettings(Vocabulary.load(vocab_file), lower, accents)


def check_casing(flag: bool | None, own: bool, folder: str | os.PathLike[str]) -> None:
    """Compares `--do_lower_case`, where it is given, with what a model directory says of itself.

    Raises:
        UserError: they contradict each other.

    Example:
        >>> check_casing(None, True, "bert")
    """
    if flag not in (None, own):
        raise UserError(
            f"--do_lower_case={str(flag).lower()} contradicts {folder}, which was trained with "
            f"{str(own).lower()}; leave the flag out."
        )


def read_casing(folder: str | os.PathLike[str]) -> tuple[bool | None, bool | None]:
    """How a model directory's text is cased; `tokenizer.json` speaks where the other is silent.

    Returns:
        (do_lower_case or None where no file says it, strip_accents or None).

    Raises:
        UserError: neither file is there, or one says what BERT's tokenizer does not do.
    """
    path, fast = Path(folder) / TOKENIZER_FILE, Path(folder) / FAST_TOKENIZER_FILE
    values = read_json_object(path) if path.exists() or not fast.exists() else {}
    lower, accents = values.get("do_lower_case"), values.get("strip_accents")
    if not isinstance(lower, bool) and fast.exists():
        described = read_tokenizer_json(fast)
        lower = described.do_lower_case
        accents = described.strip_accents if accents is None else accents
    if accents is not None and not isinstance(accents, bool):
        raise UserError(f"{path}: strip_accents is {accents!r}; it must be true, false or null.")
    if values.get("tokenize_chinese_chars") is False:
        raise UserError(
            f"{path}: tokenize_chinese_chars is false, but BERT's tokenizer always puts spaces "
            "round Chinese characters; name a model that was trained so."
        )
    return lower if isinstance(lower, bool) else None, accents


def check_tokenizer_class(folder: str | os.PathLike[str]) -> None:
    """Refuses a model whose text is cut by other rules than BERT's (by MeCab, say).

    Raises:
        UserError: a file of the model directory says so.

    Example:
        >>> import tempfile
        >>> check_tokenizer_class(tempfile.mkdtemp())  # nothing says anything
    """
    for path in (Path(folder) / TOKENIZER_FILE, Path(folder) / CONFIG_FILE):
        values = read_json_object(path) if path.exists() else {}
        name, words = values.get("tokenizer_class"), values.get("word_tokenizer_type", "basic")
        if (name is not None and name not in _TOKENIZERS) or words not in (None, "basic"):
            raise UserError(
                f"{path}: its text is cut by {name or words}, not by BERT's own rules, so that its "
                "pieces would not be found; name a model with a BertTokenizer."
            )


def _refuse_tf1(folder: str | os.PathLike[str]) -> None:
    """Says what to do where a model directory is needed and a TF1 checkpoint lies."""
    found = find_checkpoint(folder)
    if found != Path(folder):
        raise UserError(
            f"{folder}: holds a TF1 checkpoint and is no model directory; name {found} with "
            "--bert_config_file and --vocab_file, or convert it first (convert_checkpoint)."
        )


def find_vocabulary(folder: str | os.PathLike[str]) -> Path:
    """Where a model directory's vocabulary lies: its `vocab.txt`, else its `tokenizer.json`.

    Raises:
        UserError: it has neither.
    """
    for name in (VOCABULARY_FILE, FAST_TOKENIZER_FILE):
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    raise UserError(
        f"{Path(folder) / VOCABULARY_FILE}: no such file; a model directory needs its vocabulary "
        f"({VOCABULARY_FILE} or {FAST_TOKENIZER_FILE})."
    )


def _model_config(
    config: BertConfig, heads: tuple[str, ...], weights: dict[str, np.ndarray]
) -> dict[str, Any]:
    values, labels = config.to_hugging_face(), _labels(weights)
    values.pop("transformers_version", None)
    # A file that was read may name other heads than those that are written.
    architecture = architecture_of(config)
    if _HEADS.get(architecture) != heads:
        architecture = _ARCHITECTURES.get(heads, "BertModel")
        values.pop("problem_type", None)
    values["architectures"] = [architecture]
    for key in ("id2label", "label2id"):
        named = values.get(key)
        if not isinstance(named, dict) or len(named) != labels:
            values.pop(key, None)
    values.pop("num_labels", None)
    if labels and "id2label" not in values:
        values["id2label"] = {str(number): f"LABEL_{number}" for number in range(labels)}
        values["label2id"] = {f"LABEL_{number}": number for number in range(labels)}
    values["dtype"] = str(weights["embeddings/token_embeddings"].dtype)
    values.pop("torch_dtype", None)
    return dict(sorted(values.items()))


def _labels(weights: dict[str, np.ndarray]) -> int:
    bias = weights.get("classifier/dense/bias", weights.get("tagger/dense/bias"))
    return 0 if bias is None else bias.shape[0]


def _tokenizer_config(config: BertConfig, text: TextSettings) -> dict[str, Any]:
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


def _write_json(path: Path, values: dict[str, Any]) -> None:
    with open_whole(path) as file:
        file.write(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
