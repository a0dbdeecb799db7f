"""Which predictions are scored."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.score_answers_config import ScoreAnswersConfig


def test_an_unknown_metric_is_refused():
    with pytest.raises(UserError, match="metric"):
        ScoreAnswersConfig(data_file=Path("x"), predictions_file=Path("y"), metric="bleu")
