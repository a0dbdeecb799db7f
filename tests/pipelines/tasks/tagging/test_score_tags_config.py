"""The options of scoring tags."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.tagging.options import ScoreTagsConfig


def test_a_column_before_the_first_is_refused():
    with pytest.raises(UserError, match="word_column"):
        ScoreTagsConfig(predictions_file=(Path("dev.txt"),), word_column=0)
