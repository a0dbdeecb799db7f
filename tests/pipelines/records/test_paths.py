"""TensorFlow's file system in memory (ram://) stands for a remote one."""

from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.inputs.inspect import InspectConfig, inspect_pretraining_data
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.records import paths
from pipelines.records.check import find_shards
from pipelines.records.paths import match_files
from pipelines.runs.pretraining_start import casing_of_shards
from tests.support.pretraining_corpus import make_shards


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt", "in/c.txt", ".a.txt.17.incomplete", ".work/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "b.txt", "in"]),
        ("*.txt*", ["a.txt", "b.txt"]),
        ("**.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "in/c.txt"]),
        ("?.txt", ["a.txt", "b.txt"]),
        ("[b].txt", ["b.txt"]),
        (".work/*", [".work/d.txt"]),
        ("none*", []),
        ("none.txt", ["none.txt"]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_patterns_match_as_in_a_shell_and_hidden_files_only_by_name(pattern, found):
    assert match_files(pattern) == found
    absolute = [f"{Path.cwd()}/{name}" for name in found]
    assert match_files(f"{Path.cwd()}/{pattern}") == absolute


@pytest.fixture
def bucket(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "cache"))
    make_shards(tmp_path)
    address = f"ram://{tmp_path.name}"
    tf.io.gfile.makedirs(address)
    for path in (tmp_path / "out").iterdir():
        with tf.io.gfile.GFile(f"{address}/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    return address


@pytest.mark.parametrize("name", ["/train.tfrecord", "/train.tfrecord-*", ""])
def test_a_remote_set_is_read_from_its_copy(bucket, tmp_path, name):
    there = PretrainingEvaluation([f"{bucket}{name}"], 8, 32, 4)
    here = PretrainingEvaluation([str(tmp_path / "out")], 8, 32, 4)
    assert there.num_examples == here.num_examples
    for first, second in zip(there.batches(), here.batches(), strict=True):
        assert (first["input_ids"] == second["input_ids"]).all()


def test_what_is_there_is_not_copied_again(bucket, monkeypatch, capsys):
    paths.with_local_copies([f"{bucket}/train.tfrecord"])
    capsys.readouterr()
    paths.with_local_copies([f"{bucket}/train.tfrecord"])
    assert "copy shards: 0.00" in capsys.readouterr().err  # the description alone


def test_a_remote_name_that_matches_nothing_is_refused(bucket):
    with pytest.raises(UserError, match="matches no file"):
        paths.with_local_copies([f"{bucket}/other.tfrecord"])


@pytest.mark.parametrize("name", ["/train.tfrecord", "/train.tfrecord-*", ""])
def test_a_shard_that_is_gone_there_is_missing_here_though_it_was_copied(bucket, name):
    paths.with_local_copies([f"{bucket}{name}"])
    tf.io.gfile.remove(f"{bucket}/train.tfrecord-00001-of-00003")
    with pytest.raises(UserError, match="00001-of-00003: this shard is missing"):
        find_shards(paths.with_local_copies([f"{bucket}{name}"]))


def test_a_set_that_was_removed_there_is_not_read_from_its_copy(bucket):
    paths.with_local_copies([bucket])
    for path in tf.io.gfile.glob(f"{bucket}/train.tfrecord*"):
        tf.io.gfile.copy(path, path.replace("train", "other"))
        tf.io.gfile.remove(path)
    names = [shard.path.name[:5] for shard in find_shards(paths.with_local_copies([f"{bucket}/*"]))]
    assert names == ["other"] * 3


def test_a_remote_set_can_be_looked_into_and_tells_its_casing(bucket, tmp_path):
    vocabulary = f"{tmp_path}/vocab.txt"
    told = inspect_pretraining_data(InspectConfig(f"{bucket}/train.tfrecord", vocabulary))
    assert "next sentence" in told
    assert casing_of_shards([f"{bucket}/train.tfrecord"]).do_lower_case
