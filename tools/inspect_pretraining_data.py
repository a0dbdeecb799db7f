r"""Shows what is in pre-training shards: examples in words, figures, and a page with plots.

  keras-bert inspect_pretraining_data --input_file=data/train.tfrecord --vocab_file=vocab.txt \
      --html=data/train.html

A masked position is printed as the token that the model sees, with the true token in «…».
"""

import sys

from pipelines.inputs.inspect import InspectConfig, inspect_pretraining_data
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, InspectConfig)


def _run(config: InspectConfig) -> None:
    print(inspect_pretraining_data(config))


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
