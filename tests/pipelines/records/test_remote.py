"""TensorFlow's file system in memory (ram://) stands for a remote one."""

import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.jobs.inspect_pretraining_data import InspectConfig, inspect_pretraining_data
from pipelines.jobs.pretraining_start import find_model_text
from pipelines.records import remote
from pipelines.records.check import find_shards
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


@pytest.mark.parametrize("name", ["/train.tfrecord", "/train.tfrecord-*", ""])
def test_a_shard_that_is_gone_there_is_missing_here_though_it_was_copied(bucket, name):
    remote.with_local_copies([f"{bucket}{name}"])
    tf.io.gfile.remove(f"{bucket}/train.tfrecord-00001-of-00003")
    with pytest.raises(UserError, match="00001-of-00003: this shard is missing"):
        find_shards(remote.with_local_copies([f"{bucket}{name}"]))


def test_a_set_that_was_removed_there_is_not_read_from_its_copy(bucket):
    remote.with_local_copies([bucket])
    for path in tf.io.gfile.glob(f"{bucket}/train.tfrecord*"):
        tf.io.gfile.copy(path, path.replace("train", "other"))
        tf.io.gfile.remove(path)
    names = [
        shard.path.name[:5] for shard in find_shards(remote.with_local_copies([f"{bucket}/*"]))
    ]
    assert names == ["other"] * 3


def test_a_remote_set_can_be_looked_into_and_tells_its_casing(bucket, tmp_path):
    vocabulary = f"{tmp_path}/vocab.txt"
    told = inspect_pretraining_data(InspectConfig(f"{bucket}/train.tfrecord", vocabulary))
    assert "next sentence" in told
    text = find_model_text(vocabulary, None, None, None, [f"{bucket}/train.tfrecord"])
    assert text.do_lower_case
