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

FLAGS = command_line.FlagSet(__doc__)
_INPUT = FLAGS.string(
    "input", None, "A model directory or the prefix of a TF1 checkpoint.", required=True
)
_OUTPUT = FLAGS.string(
    "output", None, "A folder, or a prefix such as folder/bert_model.ckpt.", required=True
)
_WORDS = FLAGS.words("words", [], "The new words, comma-separated.")
_WORDS_FILE = FLAGS.string("words_file", None, "A UTF-8 file with new words, one a line.")
_FILL_UNUSED = FLAGS.switch(
    "fill_unused", True, "Use [unused…] entries up before the tables are enlarged."
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
    from pipelines.jobs.grow_vocabulary import GrowConfig, grow_checkpoint

    new = grow_checkpoint(
        GrowConfig(
            input=_INPUT.value,
            output=_OUTPUT.value,
            words=_WORDS.value,
            words_file=_WORDS_FILE.value,
            fill_unused=_FILL_UNUSED.value,
            output_format=_OUTPUT_FORMAT.value,
            bert_config_file=_BERT_CONFIG_FILE.value,
            vocab_file=_VOCAB_FILE.value,
            do_lower_case=_DO_LOWER_CASE.value,
        )
    )
    for entry in new:
        print(f"{entry.id}\t{entry.piece}\t{' '.join(entry.made_from)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
