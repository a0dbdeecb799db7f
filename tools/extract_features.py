"""Gives the encoder's vectors for lines of text.

One input a line; " ||| " parts two segments. The output is google's JSON lines (a line an input,
a vector a token and layer), or NumPy's npz with `vectors`, `ids` and `offsets`. Lines of like
length are computed together.

Example:
  keras-bert extract_features --input_file=lines.txt --output_file=lines.npz --output_format=npz
      --init_checkpoint=bert --layers=-1 --pooling=mean
"""

import sys
from collections.abc import Sequence

from keras_bert_impl.errors import UserError
from tools import command_line
from tools.checkpoint_flags import DescriptionFlags

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.string("input_file", None, "UTF-8 text, one input a line.", required=True)
_OUTPUT_FILE = FLAGS.string("output_file", None, "The file to write.", required=True)
_INIT_CHECKPOINT = FLAGS.string(
    "init_checkpoint", None, "A model directory or the prefix of a TF1 checkpoint.", required=True
)
_LAYERS = FLAGS.words(
    "layers", ["-1", "-2", "-3", "-4"], "Numbers of layers, comma-separated; -1 is the last."
)
_MAX_SEQ_LENGTH = FLAGS.integer(
    "max_seq_length",
    128,
    "The most pieces of an input, [CLS] and [SEP] included; longer inputs are cut.",
    lower_bound=3,
)
_BATCH_SIZE = FLAGS.integer("batch_size", 32, "Inputs computed at once.", lower_bound=1)
_OUTPUT_FORMAT = FLAGS.choice(
    "output_format", "json", ("json", "npz"), "google's JSON lines, or NumPy arrays."
)
_POOLING = FLAGS.choice(
    "pooling",
    "none",
    ("none", "mean", "cls"),
    "A vector a token, the mean over an input's tokens, or the vector of [CLS].",
)
_LAYER_COMBINATION = FLAGS.choice(
    "layer_combination",
    "concat",
    ("concat", "sum"),
    "How the layers become one vector, in npz and where tokens are pooled.",
)
_PRECISION = FLAGS.choice(
    "precision",
    "float32",
    ("float32", "bfloat16"),
    "What to compute in; bfloat16 is about twice as fast where the processor knows it, and good "
    "to two digits.",
)
_DESCRIPTION = DescriptionFlags(FLAGS, "checkpoint")
_IGNORED = "Taken for the original's sake; it changes nothing here."
FLAGS.switch("use_tpu", False, _IGNORED)
FLAGS.switch("use_one_hot_embeddings", False, _IGNORED)
FLAGS.string("master", None, _IGNORED)
FLAGS.integer("num_tpu_cores", 8, _IGNORED)


def _layers() -> list[int]:
    words = _LAYERS.value
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise UserError(f"--layers={','.join(words)}: give whole numbers such as -1,-2.") from error


def _run() -> None:
    layers = _layers()
    from pipelines.features.config import FeaturesConfig
    from pipelines.features.extract import extract_features

    config = FeaturesConfig(
        input_file=_INPUT_FILE.value,
        output_file=_OUTPUT_FILE.value,
        init_checkpoint=_INIT_CHECKPOINT.value,
        layers=layers,
        max_seq_length=_MAX_SEQ_LENGTH.value,
        batch_size=_BATCH_SIZE.value,
        output_format=_OUTPUT_FORMAT.value,
        pooling=_POOLING.value,
        combination=_LAYER_COMBINATION.value,
        precision=_PRECISION.value,
        **_DESCRIPTION.values(),
    )
    print(f"{extract_features(config)} lines: {config.output_file}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
