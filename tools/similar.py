"""Finds the texts of a file that are nearest to a text, by vectors that embed made.

Each text stands with the cosine of the two vectors and its number in the file.

Example:
  keras-bert embed --model=all-MiniLM-L6-v2 --input_file=lines.txt --output_file=lines.npy
  keras-bert similar --model=all-MiniLM-L6-v2 --input_file=lines.txt --vectors_file=lines.npy
      --query='How do I get my money back?'
"""

import sys
from collections.abc import Sequence

from pipelines.vectors.options import SimilarConfig
from tools import command_line
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SimilarConfig)


def _run() -> None:
    config = FLAGS.config()
    from pipelines.vectors.similar import find_similar, lines_of

    for line in lines_of(find_similar(config)):
        print(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
