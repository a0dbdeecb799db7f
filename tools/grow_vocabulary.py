"""Adds words to a trained checkpoint, so that they are no longer cut into pieces.

A new word takes an [unused…] entry while there are any, and then enlarges the token table, decoder
and output bias. Its row starts as the mean of the rows of its former pieces. The result is written
as a model directory or, where the output's name holds ".ckpt", as a TF1 checkpoint. One line a
word is printed: id, word, former pieces.

Example:
  keras-bert grow_vocabulary --input=bert --output=medical_bert --words=angioplasty,stent
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.checkpoint_flags import ConversionFlags

FLAGS = command_line.FlagSet(__doc__)
_CONVERSION = ConversionFlags(FLAGS)
_WORDS = FLAGS.words("words", [], "The new words, comma-separated.")
_WORDS_FILE = FLAGS.string("words_file", None, "A UTF-8 file with new words, one a line.")
_FILL_UNUSED = FLAGS.switch(
    "fill_unused", True, "Use [unused…] entries up before the tables are enlarged."
)


def _run() -> None:
    from keras_bert_impl.checkpoints.grow import GrowConfig, grow_checkpoint

    config = GrowConfig(
        words=_WORDS.value,
        words_file=_WORDS_FILE.value,
        fill_unused=_FILL_UNUSED.value,
        **_CONVERSION.values(),
    )
    new = grow_checkpoint(config)
    for entry in new:
        print(f"{entry.id}\t{entry.piece}\t{' '.join(entry.made_from)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
