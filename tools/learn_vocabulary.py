"""Learns a WordPiece vocabulary of a given size from text in any language.

Example:
  keras-bert learn_vocabulary --input_file=sentences.txt --vocab_file=vocab.txt \
      --vocab_size=30000 --do_lower_case
"""

import sys
from collections.abc import Sequence

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file", [], "The text: paths or glob patterns, separated by commas."
)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "Where to write the vocabulary.", required=True)
_VOCAB_SIZE = FLAGS.integer("vocab_size", 30_000, "How many pieces to learn.", lower_bound=10)
_DO_LOWER_CASE = FLAGS.switch("do_lower_case", True, "Whether words are lower-cased.")


def _run() -> None:
    from pipelines.jobs.learn_vocabulary import LearnVocabularyConfig, learn_vocabulary

    vocabulary = learn_vocabulary(
        LearnVocabularyConfig(
            input_files=_INPUT_FILE.value,
            vocab_file=_VOCAB_FILE.value,
            vocab_size=_VOCAB_SIZE.value,
            do_lower_case=_DO_LOWER_CASE.value,
        )
    )
    print(f"{len(vocabulary)} pieces")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
