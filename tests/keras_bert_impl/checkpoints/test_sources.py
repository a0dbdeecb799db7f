import pytest

from keras_bert_impl.checkpoints.sources import find_checkpoint
from keras_bert_impl.errors import UserError


@pytest.fixture
def folder(tmp_path):
    """Two TF1 checkpoints of one training."""
    for step in (10, 20):
        for suffix in ("index", "meta", "data-00000-of-00001"):
            (tmp_path / f"model.ckpt-{step}.{suffix}").touch()
    return tmp_path


@pytest.mark.parametrize("suffix", ["", ".index", ".meta", ".data-00000-of-00001"])
def test_every_file_of_a_tf1_checkpoint_means_its_prefix(folder, suffix):
    assert find_checkpoint(f"{folder}/model.ckpt-10{suffix}") == folder / "model.ckpt-10"


def test_relative_paths_stay_relative(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert str(find_checkpoint("model.ckpt-10.index")) == "model.ckpt-10"


@pytest.mark.parametrize("place", ["model.ckpt-10", "/where/it/was/trained/model.ckpt-10"])
def test_a_folder_means_the_checkpoint_that_its_state_file_names(folder, place):
    lines = f'model_checkpoint_path: "{place}"\nall_model_checkpoint_paths: "model.ckpt-20"\n'
    (folder / "checkpoint").write_text(lines)
    assert find_checkpoint(folder) == folder / "model.ckpt-10"


def test_a_large_file_is_no_list_of_checkpoints(folder):
    with (folder / "checkpoint").open("wb") as file:
        file.truncate(1 << 22)
    with pytest.raises(UserError, match=r"checkpoint: has more than 1 MiB, which no list of"):
        find_checkpoint(folder)
    (folder / "model.ckpt-20.index").unlink()
    assert find_checkpoint(folder) == folder / "model.ckpt-10"


def test_a_folder_with_one_checkpoint_means_that_one(folder):
    (folder / "model.ckpt-20.index").unlink()
    assert find_checkpoint(folder) == folder / "model.ckpt-10"


def test_which_of_several_is_meant_must_be_said(folder):
    with pytest.raises(UserError, match=r"holds 2 TF1 checkpoints, the first are model\.ckpt-10"):
        find_checkpoint(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json"])
def test_a_model_directory_and_its_weights_mean_the_directory(folder, name):
    (folder / name).touch()
    assert find_checkpoint(folder) == folder
    assert find_checkpoint(folder / name) == folder


def test_what_is_neither_stays_as_it_is(tmp_path):
    assert find_checkpoint(tmp_path) == tmp_path
    assert find_checkpoint(tmp_path / "nothing") == tmp_path / "nothing"
