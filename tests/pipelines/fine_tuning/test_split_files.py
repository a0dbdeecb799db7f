"""Which file is which split, for all options that name them so."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.options import SplitFiles
from pipelines.tasks.choices.files import RunSwagConfig
from pipelines.tasks.tagging.options import RunNerConfig


@dataclass
class Named(SplitFiles):
    FILE_NAMES: ClassVar = {"train": "a.txt", "dev": "b.txt", "test": "c.txt"}

    data_dir: Path | None = None
    train_file: Path | None = None
    dev_file: Path | None = None
    test_file: Path | None = None


def test_a_file_by_name_stands_before_the_folders(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    named = Named(data_dir=tmp_path, dev_file=Path("mine"))
    files = [named.file(split) for split in ("train", "dev", "test")]
    assert files == [tmp_path / "a.txt", Path("mine"), None]


def test_a_missing_folder_is_named_with_the_file_it_should_have(tmp_path):
    with pytest.raises(UserError, match=r"no: there is no such folder; name that of a\.txt"):
        Named(data_dir=tmp_path / "no").file("dev")


def test_where_nothing_names_a_file_all_names_are_said():
    with pytest.raises(
        UserError, match=r"what to tag; give `data_dir`, the folder of a\.txt, b\.txt and"
    ):
        Named().check_names_files("tag")
    Named(test_file=Path("mine")).check_names_files("tag")


@pytest.mark.parametrize("config", [RunNerConfig, RunSwagConfig])
def test_a_run_without_files_is_refused_before_its_model_is_looked_for(config):
    with pytest.raises(UserError, match="nothing says what to"):
        config(output_dir=Path("run"), do_predict=True)
