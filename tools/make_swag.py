"""Makes a set in SWAG's form out of any text: which of four sentences follows a sentence?

The other three are from the same document. Whole documents are held out: val.csv has their
examples, train.csv all others. The tool prints how many examples there are, and how many of the
held-out ones lexical overlap alone finds (the ending that shares most of its words with the
context).

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
