r"""Learns a WordPiece vocabulary of exactly the requested size from text in any language.

It reads what split_sentences reads and what it writes. The vocabulary does not depend on the number
of workers. A report says how the vocabulary splits the words it was learned from.

Examples:
  keras-bert learn_vocabulary --input_file=sentences.txt --vocab_file=vocab.txt --vocab_size=30000
  keras-bert learn_vocabulary --input_file='wiki/*.jsonl.xz' --vocab_file=vocab.txt \
      --vocab_size=30000 --nodo_lower_case
"""

from tools.table import made

FLAGS, main = made(__name__)
