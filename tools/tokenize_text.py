"""Splits lines into WordPiece tokens: lines in, JSON lines with `tokens` and `ids` out.

Examples:
  keras-bert tokenize_text --vocab_file=vocab.txt --do_lower_case --input_file=text.txt
  echo 'Some text.' | keras-bert tokenize_text --vocab_file=vocab.txt --offsets=characters
  keras-bert tokenize_text --vocab_file=vocab.txt --certify --input_file='wiki/*.txt.xz'
"""

import sys
from collections.abc import Sequence

from pipelines.corpora.tokenize_text import TokenizeTextConfig, run_tokenize_text
from tools import command_line
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, TokenizeTextConfig)


def _run() -> None:
    run_tokenize_text(FLAGS.config(), sys.stdin.buffer, sys.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
