"""Adds words to a trained checkpoint, so that they are no longer split into several tokens.

A new word takes an [unused…] entry while there are any, and then enlarges the token table, decoder
and output bias. Its row starts as the mean of the rows of its former tokens. The result is written
as a model directory or, where the output's name holds ".ckpt", as a TF1 checkpoint. One line a
word is printed: id, word, former tokens.

Example:
  keras-bert grow_vocabulary --input=bert --output=medical_bert --words=angioplasty,stent
"""

from tools.table import made

FLAGS, main = made(__name__)
