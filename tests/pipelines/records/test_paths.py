"""TensorFlow's file system in memory (ram://) stands for a remote one."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.corpora.sources import match_files
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.records import paths
from pipelines.records.check import find_shards
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
        ("**.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "in/c.txt"]),
        ("[b].txt", ["b.txt"]),
        (".work/*", [".work/d.txt"]),
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
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    make_shards(tmp_path)
    address = f"ram://{tmp_path.name}"
    tf.io.gfile.makedirs(address)
    for path in (tmp_path / "out").iterdir():
        with tf.io.gfile.GFile(f"{address}/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    return address


def test_a_remote_set_is_read_from_its_copy(bucket, tmp_path):
    there = PretrainingEvaluation([f"{bucket}/train.tfrecord-*"], 8, 32, 4)
    here = PretrainingEvaluation([str(tmp_path / "out")], 8, 32, 4)
    assert there.num_examples == here.num_examples
    for first, second in zip(there.batches(), here.batches(), strict=True):
        assert (first["input_ids"] == second["input_ids"]).all()


SHARD = "train.tfrecord-00001-of-00003"


def copies(address, monkeypatch):
    """Copies a set; gives the names of the files that were fetched, and the folder."""
    fetched, whole = [], paths.open_whole
    with monkeypatch.context() as patched:
        note = lambda path, *how: fetched.append(path.name) or whole(path, *how)  # noqa: E731
        patched.setattr(paths, "open_whole", note)
        (local,) = paths.with_local_copies([f"{address}/train.tfrecord"])
    return {name for name in fetched if not name.startswith(".")}, Path(local).parent


def nothing_happens(there, local, monkeypatch):
    pass


def the_set_is_made_anew(there, local, monkeypatch):
    """With the same sizes: only the checksum in the description tells."""
    with tf.io.gfile.GFile(f"{there}/train.tfrecord.recipe.json", "r") as file:
        description = json.loads(file.read())
    description["shards"][1]["crc32c"] = "0" * 8
    with tf.io.gfile.GFile(f"{there}/train.tfrecord.recipe.json", "w") as file:
        file.write(json.dumps(description))


def the_store_tells_of_a_change(there, local, monkeypatch):
    stat = tf.io.gfile.stat

    def later(path):
        found = stat(path)
        return SimpleNamespace(length=found.length, mtime_nsec=int(path.endswith(SHARD)))

    monkeypatch.setattr(tf.io.gfile, "stat", later)


@pytest.mark.parametrize(
    ("happens", "is_copied"),
    [
        (nothing_happens, False),
        (the_set_is_made_anew, True),
        (the_store_tells_of_a_change, True),
    ],
)
def test_a_copy_counts_while_it_is_known_to_be_of_what_is_there(
    bucket, monkeypatch, happens, is_copied
):
    first, local = copies(bucket, monkeypatch)
    assert SHARD in first
    sound = (local / SHARD).read_bytes()
    happens(bucket, local, monkeypatch)
    again, local = copies(bucket, monkeypatch)
    assert (SHARD in again) == is_copied
    assert len(list(local.parent.iterdir())) == 1
    assert (local / SHARD).read_bytes() == sound
    assert SHARD not in copies(bucket, monkeypatch)[0]


@pytest.mark.parametrize("name", ["/train.tfrecord-*", ""])
def test_a_shard_that_is_gone_there_is_missing_here_though_it_was_copied(bucket, name):
    paths.with_local_copies([f"{bucket}{name}"])
    tf.io.gfile.remove(f"{bucket}/train.tfrecord-00001-of-00003")
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is missing"):
        find_shards([f"{bucket}{name}"])
