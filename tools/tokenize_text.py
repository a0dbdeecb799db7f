"""Splits lines into WordPiece tokens: lines in, JSON lines with `tokens` and `ids` out.

Examples:
  keras-bert tokenize_text --vocab_file=vocab.txt --do_lower_case --input_file=text.txt
  echo 'Some text.' | keras-bert tokenize_text --vocab_file=vocab.txt --offsets=characters
"""

import sys

from pipelines.corpora.tokenize_text import TokenizeTextConfig, run_tokenize_text
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, TokenizeTextConfig)


def _run(config: TokenizeTextConfig) -> None:
    run_tokenize_text(config, sys.stdin.buffer, sys.stdout)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
