"""Gives the encoder's vectors for lines of text.

One input a line; " ||| " separates two segments. The output is google's JSON lines (a line for each
input, a vector for each token and layer), or NumPy's npz with `vectors`, `ids` and `offsets`. Lines
of similar length are computed together.

Example:
  keras-bert extract_features --input_file=lines.txt --output_file=lines.npz --output_format=npz
      --model=bert --layers=-1 --pooling=mean
"""

import sys

from pipelines.vectors.options import FeaturesConfig
from tools.config_flags import ConfigFlags, add_ignored_flags

FLAGS = ConfigFlags(__doc__, FeaturesConfig)
add_ignored_flags(FLAGS)


def _run(config: FeaturesConfig) -> None:
    from pipelines.vectors.extract import extract_features

    print(f"{extract_features(config)} lines: {config.output_file}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
