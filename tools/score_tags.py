"""Scores predicted tags as conlleval does, with intervals, and compares two ways of tagging.

run_ner writes dev_predictions.txt: the file's own columns and the predicted tag. The 95 %
intervals are from the bootstrap over documents (or sentences, if there is no line -DOCSTART-).

Example:
  keras-bert score_tags --predictions_file=document/seed-1/dev_predictions.txt
      --compared_with=sentence/seed-1/dev_predictions.txt
"""

import sys

from pipelines.tasks.tagging.options import ScoreTagsConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, ScoreTagsConfig)


def _run(config: ScoreTagsConfig) -> None:
    from pipelines.tasks.tagging.scores import score_tags

    for name, value in score_tags(config).items():
        print(f"{name} = {value}")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
