"""Adds questions without an answer to a set in SQuAD's form: SQuAD 2.0's form out of SQuAD 1.1.

A share of the questions is asked again about another passage of the same article, one that contains
none of the question's answers. The result is for run_squad --version_2_with_negative. If a passage
answers a moved question in other words, the tool does not notice.

Example:
  keras-bert make_unanswerable --input_file=train-v1.1.json --output_file=train-moved.json
  keras-bert run_squad --train_file=train-moved.json --version_2_with_negative --do_train
      --init_checkpoint=run/model --output_dir=squad2
"""

import sys

from pipelines.tasks.questions.derived_sets import MakeUnanswerableConfig, make_unanswerable
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, MakeUnanswerableConfig)


def _run(config: MakeUnanswerableConfig) -> None:
    counts = make_unanswerable(config)
    print(f"{counts.questions} questions, {counts.moved} of them also with another passage")
    if counts.left:
        print(f"{counts.left} stay: every other passage of their article has their answer")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
