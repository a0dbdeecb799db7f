"""Finds the texts of a file that are nearest to a text, by vectors that embed made.

Each text is printed with the cosine of the two vectors and its number in the file.

Example:
  keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
  keras-bert similar --model=all-MiniLM-L6-v2 --input_file=lines.txt --vectors_file=lines.npy
      --query='How do I get my money back?'
"""

import sys

from pipelines.vectors.options import SimilarConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SimilarConfig)


def _run(config: SimilarConfig) -> None:
    from pipelines.vectors.similar import find_similar, lines_of

    for line in lines_of(find_similar(config)):
        print(line)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
