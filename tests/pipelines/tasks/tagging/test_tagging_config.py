"""Which file is which split."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.tagging.options import TaggingConfig


def test_a_file_by_name_stands_before_the_folders(tmp_path):
    (tmp_path / "train.txt").write_text("It O\n")
    (tmp_path / "dev.txt").write_text("It O\n")
    config = TaggingConfig(data_dir=tmp_path, dev_file=Path("other.txt"))
    files = [config.file(split) for split in ("train", "dev", "test")]
    assert files == [tmp_path / "train.txt", Path("other.txt"), None]
    with pytest.raises(UserError, match="there is no such folder"):
        TaggingConfig(data_dir=tmp_path / "no").file("train")


def test_without_a_folder_only_named_files_are_read():
    assert TaggingConfig(train_file=Path("x")).file("dev") is None


@pytest.mark.parametrize("wrong", [{"word_column": 0}, {"tag_column": -2}, {"context": "file"}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(UserError):
        TaggingConfig(**wrong)
