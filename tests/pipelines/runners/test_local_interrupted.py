"""What a run of the local runner leaves when it is killed, and what the next one makes of it."""

import shutil

import pytest

from pipelines.jobs.create_pretraining_data import create_pretraining_data
from pipelines.runners import local
from tests.support.pretraining_corpus import contents, make_config, make_shards


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """What a run makes of the tiny corpus without interruption."""
    folder = tmp_path_factory.mktemp("expected")
    make_shards(folder)
    return contents(folder / "out")


@pytest.mark.parametrize("gone", ["ids.bin", "sentences.bin", "documents.bin"])
def test_tokens_of_which_a_file_is_gone_are_made_again(tmp_path, expected, gone):
    """Killed while the work folder was being removed: files go in any order."""
    config = make_shards(tmp_path, work_folder=str(tmp_path / "work"))
    (file,) = (tmp_path / "work").glob(f"tokens-*/{gone}")
    file.unlink()
    shutil.rmtree(tmp_path / "out")
    create_pretraining_data(config)
    assert contents(tmp_path / "out") == expected


def test_the_work_folder_is_removed_while_no_other_run_may_begin_one(tmp_path, monkeypatch):
    config = make_config(tmp_path)
    lock = tmp_path / "out" / ".train.tfrecord.lock"
    locked = []
    true_rmtree = shutil.rmtree

    def rmtree(path, *args, **kwargs):
        locked.append(lock.exists())
        true_rmtree(path, *args, **kwargs)

    monkeypatch.setattr(local.shutil, "rmtree", rmtree)
    create_pretraining_data(config)
    assert locked == [True]
