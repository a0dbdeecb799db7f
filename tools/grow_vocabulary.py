"""Adds words to a trained checkpoint, so that they are no longer split into several tokens.

A new word takes an [unused…] entry while there are any, and then enlarges the token table, decoder
and output bias. Its row starts as the mean of the rows of its former tokens. The result is written
as a model directory or, where the output's name holds ".ckpt", as a TF1 checkpoint. One line a
word is printed: id, word, former tokens.

Example:
  keras-bert grow_vocabulary --input=bert --output=medical_bert --words=angioplasty,stent
"""

import sys

from keras_bert_impl.checkpoints.grow import GrowConfig, grow_checkpoint
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, GrowConfig)


def _run(config: GrowConfig) -> None:
    for entry in grow_checkpoint(config):
        print(f"{entry.id}\t{entry.token}\t{' '.join(entry.made_from)}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
