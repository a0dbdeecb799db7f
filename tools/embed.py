"""Gives every text of a file one vector.

Texts are lines, or a column of CSV, TSV or JSON. Those of similar length are computed together, in
any order. After a stop or a kill the same command continues, after the last whole block of 16,384
texts. With the extra openvino installed, --engine=openvino is faster on CPUs,
and --precision=int8 the fastest.

Examples:
  keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
  keras-bert embed --model=all-MiniLM-L6-v2 --input_file=reviews.csv --text_column=review
      --output_file=reviews.parquet --precision=bfloat16
"""

from tools.table import made

FLAGS, main = made(__name__)
