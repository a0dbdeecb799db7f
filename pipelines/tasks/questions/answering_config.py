"""What is asked of a passage, and of which model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.described import DescribedCheckpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.config import SavedModelTrust


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(DescribedCheckpoint, SavedModelTrust):
    """What is asked of a passage, and of which model.

    Raises:
        UserError: a value out of range, or there is no question or one that is no text.
    """

    model: Path = option(REQUIRED, "A SavedModel, or the model directory of a run for questions.")
    question: Sequence[str] = option(
        (), "What is asked; repeat the flag for more questions.", repeated=True
    )
    passage_file: Path = option(REQUIRED, "The text in which answers are looked for, UTF-8.")
    num_answers: int = option(3, "How many answers to show for a question.", at_least=1)
    format: str = option(
        "table", "A table to read, or one JSON object a line.", choices=("table", "json")
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not any(question.strip() for question in self.question):
            raise UserError("there is no question; give `question`.")
        for question in self.question:
            try:
                question.encode("utf-8")
            except UnicodeEncodeError as error:
                raise UserError(
                    f"`question={question!a}` is no Unicode text; write it as UTF-8."
                ) from error
