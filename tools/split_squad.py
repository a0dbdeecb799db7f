"""Splits a set in SQuAD's form in two by articles, so that a threshold is found on other questions.

first.json has half of the articles (or --first_articles of them), second.json the others. If you
evaluate a threshold on the questions on which it was found, the figures are too good.

Example:
  keras-bert split_squad --input_file=dev-v2.0.json --output_dir=halves
  keras-bert run_squad --predict_file=halves/first.json --output_dir=squad2 --do_eval
      --version_2_with_negative --null_score_diff_threshold=auto
  keras-bert run_squad --predict_file=halves/second.json --output_dir=squad2 --do_eval
      --version_2_with_negative
"""

import sys

from pipelines.tasks.questions.derived_sets import SplitSquadConfig, split_squad
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SplitSquadConfig)


def _run(config: SplitSquadConfig) -> None:
    counts = split_squad(config)
    for name, articles, questions in zip(("first", "second"), *counts, strict=True):
        print(f"{name}.json: {articles} articles, {questions} questions")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
