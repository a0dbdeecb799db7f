"""Which predictions are scored."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.options import ScoreAnswersConfig


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"null_odds_file": Path("z")}, "`null_odds_file` .* add `version_2_with_negative=True`"),
        ({"metric": "korquad", "version_2_with_negative": True}, "`metric=korquad` has no figures"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        ScoreAnswersConfig(data_file=Path("x"), predictions_file=Path("y"), **options)
