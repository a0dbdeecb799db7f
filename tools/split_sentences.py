"""Splits documents into sentences: one sentence a line, an empty line between documents.

Every document of the input is one of the output. Plain text has a paragraph a line and an empty
line between documents; one field of JSON lines holds the text; folders of WikiExtractor and data
sets of TensorFlow Datasets (tfds:NAME:SPLIT) are read as they are; .gz, .xz and .bz2 are unpacked.
A data set must have been prepared first (`download_and_prepare`): nothing is downloaded here.

Examples:
  keras-bert split_sentences --input_file='wiki/*.jsonl.xz' --output_file=sentences.txt
  keras-bert split_sentences --input_file=extracted/,more.txt --output_dir=text --num_shards=10
  keras-bert split_sentences --input_file=tfds:wiki40b/ko:train --output_file=sentences.txt
"""

from tools.table import made

FLAGS, main = made(__name__)
