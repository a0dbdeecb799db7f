"""Splits a set in SQuAD's form in two by articles, so that a threshold is found on other questions.

first.json has half of the articles (or --first_articles of them), second.json the others. A
threshold of no answer that was found on the very questions it is scored on flatters.

Example:
  keras-bert split_squad --input_file=dev-v2.0.json --output_dir=halves
  keras-bert run_squad --predict_file=halves/first.json --output_dir=squad2 --do_eval
      --version_2_with_negative --null_score_diff_threshold=auto
  keras-bert run_squad --predict_file=halves/second.json --output_dir=squad2 --do_eval
      --version_2_with_negative
"""

import sys
from collections.abc import Sequence

from pipelines.tasks.questions.derived_sets import SplitSquadConfig, split_squad
from tools import command_line
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, SplitSquadConfig)


def _run() -> None:
    counts = split_squad(FLAGS.config())
    for name, articles, questions in zip(("first", "second"), *counts, strict=True):
        print(f"{name}.json: {articles} articles, {questions} questions")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
