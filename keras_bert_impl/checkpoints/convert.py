"""A checkpoint of any format as plain arrays under our names, and back to any format.

Conversions and vocabulary growth work here, on arrays of the type that the file holds: no number
passes through a model, so that what is converted there and back is the same bit by bit.
"""

import dataclasses
import json
import logging
import os
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints.destination import check_apart, check_beside
from keras_bert_impl.checkpoints.formats import google_tf1, keras_hub
from keras_bert_impl.checkpoints.model_directory import (
    heads_of,
    tokenizer_config,
    write_json,
    write_tensors_directory,
)
from keras_bert_impl.checkpoints.model_source import (
    CheckpointOptions,
    architecture_of,
    find_model,
    folder_of,
)
from keras_bert_impl.checkpoints.names import BILSTM, all_names
from keras_bert_impl.checkpoints.restore import (
    RestoreReport,
    check_sizes,
    check_tied_decoder,
)
from keras_bert_impl.checkpoints.sources import (
    GOOGLE_CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    TensorSource,
    find_checkpoint,
    read_weight,
)
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.checkpoints.text_files import foreign_tokenizer, refuse_foreign_tokenizer
from keras_bert_impl.config import BertConfig
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.tokenization.text_settings import TextSettings

_LOGGER = logging.getLogger(__name__)

FORMATS = ("hugging_face", "google_tf1", "keras_hub")
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
        foreign_tokenizer: what cuts the text, where BERT's own rules do not.
    """

    weights: dict[str, np.ndarray]
    config: BertConfig
    text: TextSettings
    report: RestoreReport
    foreign_tokenizer: str | None = None


def read_portable(
    checkpoint: str | os.PathLike[str],
    bert_config_file: str | os.PathLike[str] | None = None,
    vocab_file: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> PortableModel:
    """Reads a checkpoint of any format."""
    source = find_model(
        checkpoint,
        bert_config_file=bert_config_file,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
        any_tokenizer=True,
    )
    foreign = foreign_tokenizer(folder_of(Path(str(source.checkpoint))))
    weights, report = _read_weights(source.tensors(), str(source.checkpoint), source.config)
    return PortableModel(weights, source.config, source.text, report, foreign and foreign[1])


def write_portable(model: PortableModel, output: str | os.PathLike[str], form: str) -> None:
    """Writes a model as a model directory, or as a TF1 checkpoint with its configuration beside.

    Args:
        output: a folder; for "google_tf1" a prefix such as "folder/bert_model.ckpt".
    """
    check_apart(model.report.location, output)
    if form == "hugging_face":
        refuse_foreign_tokenizer(folder_of(find_checkpoint(model.report.location)))
        write_tensors_directory(output, model.weights, model.config, model.text)
        return
    if form == "keras_hub":
        length = task_settings(model.config).get(
            "max_seq_length", model.config.max_position_embeddings
        )
        keras_hub.write_preset(Path(output), model.weights, model.config, model.text, length)
        return
    for part in model.config.unknown_to_google():
        _LOGGER.warning(f"{output}: google's programs open this checkpoint without {part}.")
    folder = Path(output).parent
    names = all_names(model.config.num_hidden_layers, (BILSTM, *heads_of(model.weights)))
    variables = {
        row.google: model.weights[row.ours].T if row.google_transposed else model.weights[row.ours]
        for row in names
        if row.ours in model.weights
    }
    check_beside(output, model.config, model.text)
    make_folder(folder)
    if not (folder / VOCABULARY_FILE).exists():
        model.text.vocabulary.write(folder / VOCABULARY_FILE)
    if not (folder / GOOGLE_CONFIG_FILE).exists():
        with open_whole(folder / GOOGLE_CONFIG_FILE) as file:
            file.write(json.dumps(model.config.to_google(), indent=2) + "\n")
    if not (folder / TOKENIZER_FILE).exists():  # the casing, which google's programs do not write
        said = tokenizer_config(model.config, model.text)
        foreign = {"tokenizer_class": model.foreign_tokenizer} if model.foreign_tokenizer else {}
        write_json(folder / TOKENIZER_FILE, {**said, **foreign})
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertConfig(CheckpointOptions):
    """The options of a conversion."""

    input: str = option(
        REQUIRED,
        "A model directory, the prefix, folder or a file of a TF1 checkpoint, or a run's folder or "
        "checkpoint.",
    )
    output: str = option(REQUIRED, "A folder, or a prefix such as folder/bert_model.ckpt.")
    output_format: str = option(
        "auto",
        "The format to write; auto goes by the output's name.",
        choices=("auto", *FORMATS),
    )

    def __post_init__(self) -> None:
        check_options(self)


def convert_checkpoint(config: ConvertConfig) -> str:
    """Converts; no number is changed, and no type.

    Returns:
        A short table: what was converted, what was left out and why, where it lies.
    """
    model = read_input(config)
    form = write_output(model, config)
    table = model.report.table().replace("loaded from", "converted from", 1)
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
    write_portable(model, config.output, form)
    return form
