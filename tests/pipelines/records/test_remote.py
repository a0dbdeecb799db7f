"""TensorFlow's file system in memory (ram://) stands for a remote one."""

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.records import remote
from tests.support.pretraining_corpus import make_shards


@pytest.fixture
def bucket(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv(remote.CACHE_VARIABLE, str(tmp_path / "cache"))
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
    remote.with_local_copies([f"{bucket}/train.tfrecord"])
    capsys.readouterr()
    remote.with_local_copies([f"{bucket}/train.tfrecord"])
    assert "copy shards: 0.00" in capsys.readouterr().err  # the description alone


def test_a_remote_name_that_matches_nothing_is_refused(bucket):
    with pytest.raises(UserError, match="matches no file"):
        remote.with_local_copies([f"{bucket}/other.tfrecord"])
