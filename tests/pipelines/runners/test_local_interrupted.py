"""What a run of the local runner leaves when it is killed, and what the next one makes of it."""

import dataclasses

import pytest

from keras_bert_impl.errors import UserError
from pipelines.records.check import find_shards
from pipelines.runners import shards
from pipelines.runners.local import run_local
from tests.support.pretraining_corpus import (
    RECIPE,
    make_config,
    make_shards,
    write_corpus,
)


def _stopped_after_one_shard(monkeypatch, config) -> None:
    true_write = shards.write_shard

    def write_shard(task):
        if task.number:
            raise UserError("out of luck")
        return true_write(task)

    monkeypatch.setattr(shards, "write_shard", write_shard)
    with pytest.raises(UserError, match="out of luck"):
        run_local(config)


def test_shards_of_an_older_set_do_not_stand_beside_new_ones(tmp_path, monkeypatch):
    """A glob would take both for one set: the names are the same."""
    make_shards(tmp_path)
    other = dataclasses.replace(RECIPE, random_seed=6)
    _stopped_after_one_shard(monkeypatch, make_config(tmp_path, recipe=other))
    found = sorted(path.name for path in (tmp_path / "out").glob("train.tfrecord-*"))
    assert found == ["train.tfrecord-00000-of-00003", "train.tfrecord-00000-of-00003.index"]
    with pytest.raises(UserError, match="00001-of-00003: this shard of the set is missing"):
        find_shards([f"{tmp_path}/out/train.tfrecord-*"])


def test_text_that_is_named_as_a_shard_is_kept(tmp_path):
    text = write_corpus(tmp_path)
    before = text.read_bytes()
    config = make_config(tmp_path, output=f"a,{text}", num_shards=0)
    with pytest.raises(UserError, match=r"corpus.txt: is input, but .* another `output_file`"):
        run_local(config)
    assert text.read_bytes() == before
