"""Makes a set in SWAG's form out of any text: which of four sentences follows a sentence?

The other three stand in the same document. Documents are held out whole: val.csv has their
examples, train.csv those of all others. Prints how many there are, and which share of the held-out
ones is found by lexical overlap alone (the ending that shares most of its words with the context).

Example:
  keras-bert make_swag --input_file=sentences.txt --output_dir=following
  keras-bert run_swag --data_dir=following --init_checkpoint=run/model --output_dir=chosen
      --do_train --do_eval
"""

import sys

from pipelines.tasks.choices.following_sentences import MakeSwagConfig, make_swag
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, MakeSwagConfig)


def _run(config: MakeSwagConfig) -> None:
    counts = make_swag(config)
    print(f"{counts.train} examples to train on, {counts.dev} held out")
    print(f"lexical overlap chooses {100 * counts.overlap_accuracy:.1f} % of these rightly")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
