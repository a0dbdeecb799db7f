"""A checkpoint of any format as plain arrays under our names, and back to any format.

Conversions and vocabulary growth work here, on arrays of the type that the file holds: no number
passes through a model, so that what is converted there and back is the same bit by bit.
"""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints import google_tf1
from keras_bert_impl.checkpoints.destination import check_apart, check_beside
from keras_bert_impl.checkpoints.model_directory import (
    architecture_of,
    check_casing,
    check_tokenizer_class,
    find_vocabulary,
    heads_of,
    read_casing,
    read_config,
    write_tensors_directory,
)
from keras_bert_impl.checkpoints.names import all_names
from keras_bert_impl.checkpoints.restore import (
    RestoreReport,
    check_sizes,
    check_tied_decoder,
    open_source,
)
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    GOOGLE_CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    TensorSource,
    find_checkpoint,
    read_weight,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

FORMATS = ("hugging_face", "google_tf1")
# Both name these heads alike: the architecture tells which one it is.
_LABEL_HEADS = {
    "BertForTokenClassification": "tagger",
    "BertForMultipleChoice": "choice",
}


@dataclasses.dataclass(frozen=True)
class PortableModel:
    """A model as plain arrays.

    Attributes:
        weights: arrays by our names, shaped as our variables are, of the type in the file.
        config: the model's configuration.
        text: the vocabulary, the casing and the accents.
        report: what was read and what was left out.
    """

    weights: dict[str, np.ndarray]
    config: BertConfig
    text: TextSettings
    report: RestoreReport


def read_portable(
    checkpoint: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> PortableModel:
    """Reads a checkpoint of any format.

    Args:
        checkpoint: a model directory or the prefix of a TF1 checkpoint.
        config_file: google's bert_config.json; by default the one beside the TF1 checkpoint.
        vocab_file: the vocabulary; by default the one that lies with the checkpoint.
        do_lower_case: needed where no file beside the checkpoint says it.

    Raises:
        UserError: something is missing, not whole, or does not fit together.
    """
    source = open_source(checkpoint)
    about = find_description(checkpoint, config_file, vocab_file, do_lower_case)
    weights, report = _read_weights(source, str(checkpoint), about.config)
    return PortableModel(weights, about.config, about.text, report)


@dataclasses.dataclass(frozen=True)
class Description:
    """What lies beside a checkpoint's weights; the fields are those of `PortableModel`."""

    config: BertConfig
    text: TextSettings


def find_description(
    checkpoint: str | os.PathLike[str],
    config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
    otherwise_lower_case: bool | None = None,
) -> Description:
    """Reads configuration, vocabulary and casing; the arguments are those of `read_portable`.

    Args:
        checkpoint: a model directory or the prefix of a TF1 checkpoint.
        config_file: google's bert_config.json.
        vocab_file: the vocabulary.
        do_lower_case: the casing.
        otherwise_lower_case: the casing where nothing says it; None refuses to guess.

    Raises:
        UserError: one is missing, they do not fit together, or `do_lower_case` contradicts a file.
    """
    found = find_checkpoint(checkpoint)
    folder = found if found.is_dir() else found.parent
    config = _find_config(found, folder, config_file)
    if vocab_file is None and not (folder / FAST_TOKENIZER_FILE).exists():
        vocab_file = _existing(None, folder / VOCABULARY_FILE, "vocab_file")
    vocab_file = vocab_file or find_vocabulary(folder)
    vocabulary = Vocabulary.load(vocab_file)
    lower, accents = _find_casing(folder, do_lower_case, otherwise_lower_case, vocabulary)
    if len(vocabulary) > config.vocab_size:
        raise UserError(
            f"{vocab_file}: has {len(vocabulary)} pieces, but the checkpoint only "
            f"{config.vocab_size}; name the vocabulary that belongs to it."
        )
    return Description(config, TextSettings(vocabulary, lower, accents))


def write_portable(model: PortableModel, output: str | os.PathLike[str], form: str) -> None:
    """Writes a model as a model directory, or as a TF1 checkpoint with its configuration beside.

    Args:
        model: what to write.
        output: a folder for "hugging_face"; a prefix such as "folder/bert_model.ckpt" for
            "google_tf1".
        form: one of `FORMATS`.

    Raises:
        UserError: something that is no older checkpoint of the same kind would be replaced, or the
            checkpoint that the model was read from; or the output cannot be written.
    """
    check_apart(model.report.location, output)
    if form == "hugging_face":
        write_tensors_directory(output, model.weights, model.config, model.text)
        return
    folder = Path(output).parent
    names = all_names(model.config.num_hidden_layers, heads_of(model.weights))
    variables = {
        row.google: model.weights[row.ours].T if row.google_turned else model.weights[row.ours]
        for row in names
        if row.ours in model.weights
    }
    check_beside(output, model.config, model.text.vocabulary)
    make_folder(folder)
    if not (folder / VOCABULARY_FILE).exists():
        model.text.vocabulary.write(folder / VOCABULARY_FILE)
    if not (folder / GOOGLE_CONFIG_FILE).exists():
        with open_whole(folder / GOOGLE_CONFIG_FILE) as file:
            file.write(json.dumps(model.config.to_google(), indent=2) + "\n")
    google_tf1.write_google_checkpoint(output, variables)


def format_of(output: str | os.PathLike[str]) -> str:
    """The format that an output path means: a name ending with ".ckpt" is a TF1 prefix.

    Example:
        >>> format_of("folder/bert_model.ckpt"), format_of("folder/model")
        ('google_tf1', 'hugging_face')
    """
    return "google_tf1" if ".ckpt" in Path(output).name else "hugging_face"


def _read_weights(
    source: TensorSource, location: str, config: BertConfig
) -> tuple[dict[str, np.ndarray], RestoreReport]:
    found = check_sizes(source, config, _possible_heads(config))
    check_tied_decoder(source)
    weights = {path: read_weight(source, hit) for path, hit in found.items()}
    used = {hit.name for hit in found.values()}
    left = [
        (name, source.reason_to_ignore(name) or "no part of a BERT that is known here")
        for name in source.names()
        if name not in used
    ]
    return weights, RestoreReport(location, tuple(sorted(weights)), (), tuple(left))


def _possible_heads(config: BertConfig) -> tuple[str, ...]:
    labels = _LABEL_HEADS.get(architecture_of(config), "classifier")
    return ("masked_lm", "next_sentence", labels, "span")


def _find_config(
    checkpoint: Path, folder: Path, config_file: str | os.PathLike[str] | None
) -> BertConfig:
    if config_file is None and checkpoint.is_dir() and (folder / CONFIG_FILE).exists():
        return read_config(folder)
    beside = CONFIG_FILE if checkpoint.is_dir() else GOOGLE_CONFIG_FILE
    path = _existing(config_file, folder / beside, "bert_config_file")
    return BertConfig.from_google_file(path)


def _find_casing(
    folder: Path, do_lower_case: bool | None, otherwise: bool | None, vocabulary: Vocabulary
) -> tuple[bool, bool | None]:
    described = any((folder / name).exists() for name in (TOKENIZER_FILE, FAST_TOKENIZER_FILE))
    own, accents = read_casing(folder) if described else (None, None)
    if own is not None:
        check_casing(do_lower_case, own, folder)
        return own, accents
    do_lower_case = otherwise if do_lower_case is None else do_lower_case
    if do_lower_case is None:
        raise UserError(
            f"{folder}: no file there says whether text is lower-cased; add --do_lower_case for an "
            "uncased model or --nodo_lower_case for a cased one."
        )
    # Accents are not counted: whether they are kept no flag says, and no file here.
    contradiction = TextSettings(vocabulary, do_lower_case, strip_accents=False).contradiction()
    if contradiction:
        raise UserError(contradiction)
    return do_lower_case, accents


def _existing(given: str | os.PathLike[str] | None, beside: Path, flag: str) -> Path:
    if given is None and not beside.exists():
        raise UserError(f"{beside}: no such file; name it with --{flag}.")
    return Path(beside if given is None else given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertConfig:
    """What to convert.

    Attributes:
        input: a model directory or the prefix of a TF1 checkpoint.
        output: a folder, or a prefix such as "folder/bert_model.ckpt".
        output_format: "hugging_face", "google_tf1", or "auto": as the output's name says.
        bert_config_file: the configuration where the input has none beside it.
        vocab_file: the vocabulary where the input has none beside it.
        do_lower_case: the casing where the input does not say it.
    """

    input: str
    output: str
    output_format: str = "auto"
    bert_config_file: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None


def convert_checkpoint(config: ConvertConfig) -> str:
    """Converts; no number is changed, and no type.

    Returns:
        A short table: what was converted, what was left out and why, where it lies.

    Raises:
        UserError: the input is not whole or not a BERT, or the output cannot be written.
    """
    model = read_input(config)
    form = write_output(model, config)
    table = model.report.table().replace("restored from", "converted from", 1)
    lines = [line for line in table.splitlines() if "newly initialised" not in line]
    lines = [line.replace("  loaded   ", "  converted", 1) for line in lines]
    types = sorted({str(array.dtype) for array in model.weights.values()})
    return "\n".join([*lines, f"written to {config.output} ({form}, {', '.join(types)})"])


def read_input(config: ConvertConfig) -> PortableModel:
    """Reads the checkpoint that a configuration names."""
    return read_portable(
        config.input, config.bert_config_file, config.vocab_file, config.do_lower_case
    )


def write_output(model: PortableModel, config: ConvertConfig) -> str:
    """Writes a model where and in the format that a configuration says; gives the format."""
    form = format_of(config.output) if config.output_format == "auto" else config.output_format
    if form == "hugging_face" and Path(config.input).is_dir():
        check_tokenizer_class(config.input)  # what is written says that BERT's tokenizer cuts
    write_portable(model, config.output, form)
    return form
