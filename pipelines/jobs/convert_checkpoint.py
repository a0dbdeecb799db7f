"""From any checkpoint format to any other."""

import dataclasses
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import check_tokenizer_class
from keras_bert_impl.checkpoints.portable import (
    PortableModel,
    format_of,
    read_portable,
    write_portable,
)


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
