"""Splits lines into WordPiece tokens: lines in, JSON lines with `tokens` and `ids` out.

Examples:
  keras-bert tokenize_text --vocab_file=vocab.txt --do_lower_case --input_file=text.txt
  echo 'Some text.' | keras-bert tokenize_text --vocab_file=vocab.txt --offsets=characters
"""

from tools.table import made

FLAGS, main = made(__name__)
