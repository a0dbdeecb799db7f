r"""Shows what is in pre-training shards: examples in words, figures, and a page with plots.

  keras-bert inspect_pretraining_data --input_file=data/train.tfrecord --vocab_file=vocab.txt \
      --html=data/train.html

Masked places are printed as what stands there with the true piece in «…».
"""

import sys
from collections.abc import Sequence

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.string(
    "input_file",
    None,
    "Shards: the common name of a set, files, globs or a folder, separated by commas.",
    required=True,
)
_VOCAB_FILE = FLAGS.string(
    "vocab_file", None, "The vocabulary that the shards were made with.", required=True
)
_NUM_SAMPLES = FLAGS.integer("num_samples", 5, "How many examples to print.", lower_bound=0)
_MAX_EXAMPLES = FLAGS.integer(
    "max_examples",
    100_000,
    "How many examples the figures are made from, spread over the whole set.",
    lower_bound=1,
)
_HTML = FLAGS.string("html", None, "File for a page with plots.")


def _run() -> None:
    from pipelines.inputs.inspect import InspectConfig, inspect_pretraining_data

    config = InspectConfig(
        input_file=_INPUT_FILE.value,
        vocab_file=_VOCAB_FILE.value,
        num_samples=_NUM_SAMPLES.value,
        max_examples=_MAX_EXAMPLES.value,
        html=_HTML.value,
    )
    print(inspect_pretraining_data(config))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
