"""What a run for named entities may be told; the tool's tests hold the sentences."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.runs.tagging_config import RunNerConfig
from pipelines.tasks.tagging.tagging_config import TaggingConfig


def test_some_file_must_be_named():
    with pytest.raises(UserError, match="nothing says what to tag"):
        RunNerConfig(output_dir=Path("run"))
    files = TaggingConfig(test_file=Path("new.txt"))
    assert RunNerConfig(output_dir=Path("run"), files=files).max_seq_length == 128
