"""Finds the texts of a file that are nearest to a text, by vectors that embed made.

Each text is printed with the cosine of the two vectors and its number in the file.

Example:
  keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
  keras-bert similar --model=all-MiniLM-L6-v2 --input_file=lines.txt --vectors_file=lines.npy
      --query='How do I get my money back?'
"""

from tools.table import made

FLAGS, main = made(__name__)
