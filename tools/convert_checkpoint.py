"""Converts a checkpoint: google's TF1 files to a Hugging Face directory, or back.

The input is a model directory (config.json, model.safetensors or its shards, vocab.txt) or the
prefix of a TF1 checkpoint with bert_config.json and vocab.txt beside it. An output whose name holds
".ckpt" is written as a TF1 checkpoint, any other as a model directory. Numbers and their types
stay as they are; optimizer slots are left out. Nothing that was downloaded is executed: a
pytorch_model.bin is refused.

Example:
  keras-bert convert_checkpoint --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert
      --do_lower_case
  keras-bert convert_checkpoint --input=bert --output=google/bert_model.ckpt
"""

import sys
from collections.abc import Sequence

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT = FLAGS.string(
    "input", None, "A model directory or the prefix of a TF1 checkpoint.", required=True
)
_OUTPUT = FLAGS.string(
    "output", None, "A folder, or a prefix such as folder/bert_model.ckpt.", required=True
)
_OUTPUT_FORMAT = FLAGS.choice(
    "output_format",
    "auto",
    ("auto", "hugging_face", "google_tf1"),
    "The form to write; auto goes by the output's name.",
)
_BERT_CONFIG_FILE = FLAGS.string(
    "bert_config_file", None, "google's bert_config.json, where none lies beside the input."
)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "The vocabulary, where none lies beside the input.")
_DO_LOWER_CASE = FLAGS.switch(
    "do_lower_case", None, "Whether text is lower-cased, where the input does not say it."
)


def _run() -> None:
    from pipelines.jobs.convert_checkpoint import ConvertConfig, convert_checkpoint

    config = ConvertConfig(
        input=_INPUT.value,
        output=_OUTPUT.value,
        output_format=_OUTPUT_FORMAT.value,
        bert_config_file=_BERT_CONFIG_FILE.value,
        vocab_file=_VOCAB_FILE.value,
        do_lower_case=_DO_LOWER_CASE.value,
    )
    print(convert_checkpoint(config))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
