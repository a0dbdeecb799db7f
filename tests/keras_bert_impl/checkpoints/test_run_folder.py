"""Which model the folder of a run, of its checkpoints, or a file of one means."""

import pytest

from keras_bert_impl.checkpoints.model_source import locate
from keras_bert_impl.checkpoints.restore import open_source
from keras_bert_impl.checkpoints.run_folder import FINISHED_FILE, finished_steps
from keras_bert_impl.checkpoints.sources import find_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory


def make_step(folder):
    folder.mkdir(parents=True)
    for name in ("checkpoint.json", "config.json", "state.index", "weights.json"):
        (folder / name).write_text("{}")
    return folder


def make_model(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").touch()
    return folder


@pytest.fixture
def run(tmp_path):
    """A run with three checkpoints; by its names in words the middle one would be the last."""
    run = tmp_path / "run"
    for step in (900, 12_000, 123_456_789):
        make_step(run / "checkpoints" / f"step-{step:08d}")
    make_step(run / "best_checkpoint")
    (run / "checkpoints" / ".step-00000800.incomplete").mkdir()
    return run


@pytest.mark.parametrize("name", ["", "/state", "/state.index", "/config.json", "/checkpoint.json"])
def test_a_checkpoint_and_its_files_mean_the_checkpoint(run, name):
    step = run / "checkpoints" / "step-00000900"
    assert locate(f"{step}{name}") == step


def test_a_folder_of_checkpoints_means_the_newest_one(run):
    assert locate(run / "checkpoints") == run / "checkpoints" / "step-123456789"
    assert locate(run / "best_checkpoint") == run / "best_checkpoint"


def test_a_run_means_its_newest_checkpoint_until_its_model_is_there(run):
    assert locate(run) == run / "checkpoints" / "step-123456789"
    make_model(run / "model")
    assert locate(run) == run / "model"
    (run / ".finished").write_text("123456789\n")
    assert locate(run) == run / "model"


def test_a_run_that_goes_on_beyond_its_model_means_its_newest_checkpoint(run):
    make_model(run / "model")
    (run / ".finished").write_text("12000\n")
    assert locate(run) == run / "checkpoints" / "step-123456789"


def test_on_the_way_to_a_later_end_a_run_means_what_is_newer_than_its_model(run):
    make_model(run / "model")
    directory = RunDirectory(run)
    directory.write_finished_step(123_456_790)
    directory.forget_end()
    assert directory.finished_step() is None
    assert locate(run) == run / "model"
    newer = make_step(run / "checkpoints" / "step-123456791")
    assert locate(run) == newer
    directory.write_finished_step(123_456_791)
    assert locate(run) == run / "model"


def test_weights_that_lie_in_the_folder_itself_come_first(run):
    make_model(run)
    assert locate(run) == run


def test_the_folder_of_a_stranger_is_left_alone(tmp_path):
    make_step(tmp_path / "step-1")
    (tmp_path / "step-1" / "checkpoint.json").unlink()
    assert find_checkpoint(tmp_path / "step-1") == tmp_path / "step-1" / "state"


def test_a_checkpoint_that_is_not_there_is_one_sentence(run):
    with pytest.raises(UserError, match="step-00000007: no such file or folder"):
        locate(run / "checkpoints" / "step-00000007")
    with pytest.raises(UserError, match="is neither a model directory"):  # went away meanwhile
        open_source(run / "checkpoints" / "step-00000007")


def test_a_mark_of_a_finished_run_that_is_none_is_one_sentence(tmp_path):
    (tmp_path / FINISHED_FILE).write_bytes(b"\xff")
    with pytest.raises(UserError, match="cannot be read as the mark of a finished run"):
        finished_steps(tmp_path)
