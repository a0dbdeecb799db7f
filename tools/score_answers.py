"""Scores the answers of any system, as the official scripts of SQuAD, KorQuAD and TriviaQA do.

Each figure comes with its 95 % interval (bootstrap over articles). A file of TriviaQA is recognised
by its content, and its evidence is not needed.

Example:
  keras-bert score_answers --data_file=dev-v2.0.json --predictions_file=predictions.json
      --null_odds_file=null_odds.json --version_2_with_negative
"""

import sys

from pipelines.tasks.questions.options import ScoreAnswersConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, ScoreAnswersConfig)


def _run(config: ScoreAnswersConfig) -> None:
    from pipelines.tasks.questions.scores import score_answers

    for name, value in score_answers(config).items():
        print(f"{name} = {value}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
