"""Answers questions by a passage: the best answers, with their positions in the text.

The model is the model/ folder of a run of run_squad, or a SavedModel of export_saved_model, which
must be trusted, because it is a program. An export for OpenVINO starts in a second, as a model
directory does with --engine=openvino from the second time on. The passage may have any length.
Answers are the passage's own characters, and positions count its characters from 0, with its blanks
and line breaks.

Example:
  keras-bert answer --model=squad/model --question='When did it rain?' --passage_file=weather.txt
"""

import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from pipelines.tasks.questions.options import AnswerConfig
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from pipelines.tasks.questions.answering import AnsweredQuestion

FLAGS = ConfigFlags(__doc__, AnswerConfig)


def _show_table(answered: "AnsweredQuestion") -> None:
    print(answered.question)
    if not answered.has_answer or not answered.answers:
        print("  no answer in the passage" + ("; the best guesses:" if answered.answers else ""))
    for one in answered.answers:
        text = " ".join(one.text.split())
        print(
            f"  {one.probability:7.2%}  {text}  (line {one.line}, characters {one.start}-{one.end})"
        )


def _show_json(answered: "AnsweredQuestion") -> None:
    print(json.dumps(dataclasses.asdict(answered), ensure_ascii=False))


def _run(config: AnswerConfig) -> None:
    from pipelines.tasks.questions.answering import answer

    show = _show_json if config.format == "json" else _show_table
    for answered in answer(config):
        show(answered)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
