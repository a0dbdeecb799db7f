"""Shows that a word's vector depends on its sense: cosines between the uses of one word.

Each use's vector is the sum of the last layers. By default a sentence uses "bank" three times:
twice for the money's place and once for the river's side.

Example:
  keras-bert compare_word_senses --init_checkpoint=bert --picture=senses.png
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.checkpoint_flags import DescriptionFlags

FLAGS = command_line.FlagSet(__doc__)
_INIT_CHECKPOINT = FLAGS.string(
    "init_checkpoint", None, "A model directory or the prefix of a TF1 checkpoint.", required=True
)
_TEXT = FLAGS.string(
    "text",
    "The clerk locked the bank at noon, and when the bank was closed he sat down on the bank of "
    "the river to fish.",
    "A text that uses the word at least twice.",
)
_WORD = FLAGS.string("word", "bank", "The word; one piece of the vocabulary.")
_LAST_LAYERS = FLAGS.integer("last_layers", 4, "So many last layers are added up.", lower_bound=1)
_PICTURE = FLAGS.string("picture", None, "A PNG file to draw the cosines in.")
_DESCRIPTION = DescriptionFlags(FLAGS, "checkpoint")


def _run() -> None:
    from pipelines.features.compare_senses import SensesConfig, compare_word_senses

    config = SensesConfig(
        init_checkpoint=_INIT_CHECKPOINT.value,
        text=_TEXT.value,
        word=_WORD.value,
        last_layers=_LAST_LAYERS.value,
        picture=_PICTURE.value,
        **_DESCRIPTION.values(),
    )
    print(compare_word_senses(config).text())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
