"""Gives the encoder's vectors for lines of text.

One input a line; " ||| " separates two segments. The output is google's JSON lines (a line for each
input, a vector for each token and layer), or NumPy's npz with `vectors`, `ids` and `offsets`. Lines
of similar length are computed together.

Example:
  keras-bert extract_features --input_file=lines.txt --output_file=lines.npz --output_format=npz
      --model=bert --layers=-1 --pooling=mean
"""

from tools.table import made

FLAGS, main = made(__name__)
