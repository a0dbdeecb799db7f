"""What is asked."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.options import AnswerConfig


@pytest.mark.parametrize("questions", [(), ("", " ")])
def test_without_a_question_nothing_is_asked(questions):
    with pytest.raises(UserError, match="there is no question; give `question`"):
        AnswerConfig(model=Path("x"), passage_file=Path("y"), question=questions)


def test_a_question_that_is_no_text_is_refused():
    """Bytes that are no UTF-8 come from a command line as halves of surrogate pairs."""
    with pytest.raises(UserError, match=r"`question='Who\\udcff\?'` is no Unicode text"):
        AnswerConfig(model=Path("x"), passage_file=Path("y"), question=["Who\udcff?"])
