"""What a run for endings may be told; the tool's tests hold the sentences."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.choices.options import RunSwagConfig


def config(**options):
    return RunSwagConfig(output_dir=Path("run"), **options)


def test_some_file_must_be_named():
    with pytest.raises(UserError, match="nothing says what to learn"):
        config()


def test_a_file_by_name_stands_before_the_folders(tmp_path):
    (tmp_path / "train.csv").write_text("x")
    (tmp_path / "val.csv").write_text("x")
    named = config(data_dir=tmp_path, train_file=Path("mine.jsonl"))
    files = [named.file(split) for split in ("train", "dev", "test")]
    assert files == [Path("mine.jsonl"), tmp_path / "val.csv", None]
    with pytest.raises(UserError, match="there is no such folder"):
        config(data_dir=tmp_path / "no").file("dev")
