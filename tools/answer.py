"""Answers questions by a passage: the best answers, with their positions in the text.

It is `predict` with a table of its own. The model is the model/ folder of a run of run_squad, or an
export for OpenVINO, which starts in a second, as a model directory does with --engine=openvino from
the second time on. The passage may have any length. Answers are the passage's own characters, and
positions count its characters from 0, with its blanks and line breaks.

Example:
  keras-bert answer --model=squad/model --question='When did it rain?' --passage_file=weather.txt
"""

import sys

from pipelines.answering.named import AnswerConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, AnswerConfig)


def _run(config: AnswerConfig) -> None:
    from pipelines.answering.named import answer

    for line in answer(config):
        print(line)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
