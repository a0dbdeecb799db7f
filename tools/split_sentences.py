"""Splits documents into sentences: one sentence a line, an empty line between documents.

Example:
  keras-bert split_sentences --input_file='wiki/*.jsonl' --output_file=sentences.txt
"""

import sys
from collections.abc import Sequence

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.words(
    "input_file",
    [],
    "The documents: paths or glob patterns, separated by commas.",
)
_OUTPUT_FILE = FLAGS.string("output_file", None, "Where to write the sentences.", required=True)
_TEXT_FIELD = FLAGS.string("text_field", "text", "The field of a JSON line that holds the text.")


def _run() -> None:
    from pipelines.jobs.split_sentences import SplitSentencesConfig, split_sentences

    documents, sentences = split_sentences(
        SplitSentencesConfig(
            input_files=_INPUT_FILE.value,
            output_file=_OUTPUT_FILE.value,
            text_field=_TEXT_FIELD.value,
        )
    )
    print(f"{documents} documents, {sentences} sentences")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
