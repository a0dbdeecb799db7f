import dataclasses
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.records.description import Description
from pipelines.runners import disk, local
from pipelines.runners.local import run_local
from tests.support.pretraining_corpus import RECIPE, contents, make_config, make_shards


@pytest.fixture
def config(tmp_path):
    made = make_config(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "work").mkdir()
    return made


def _set_free(monkeypatch, free: float) -> None:
    usage = lambda path: type("Usage", (), {"free": free})()  # noqa: E731
    monkeypatch.setattr(disk.shutil, "disk_usage", usage)


def test_a_disk_that_is_too_small_is_noticed_before_the_work(tmp_path, monkeypatch):
    _set_free(monkeypatch, 1000)
    monkeypatch.setattr(local, "run_tasks", None)
    with pytest.raises(UserError, match=r"out: needs about .* GB but has .* GB free"):
        run_local(make_config(tmp_path))


def test_the_disk_estimate_is_close(tmp_path):
    config = make_shards(tmp_path, recipe=dataclasses.replace(RECIPE, dupe_factor=20))
    shards = sum(len(d) for n, d in contents(tmp_path / "out").items() if n[-9:-5] == "-of-")
    described = Description.read(Path(f"{config.output_file}.recipe.json"))
    record = shards / described.totals()["examples"]
    assert 0.7 < disk.record_bytes(config.recipe) / record < 1.4
    assert described.vocabulary.sha256 == Vocabulary.load(config.vocab_file).sha256


def test_what_is_written_already_counts_as_there(tmp_path, config, monkeypatch):
    facts = VocabularyFacts.of(Vocabulary.load(config.vocab_file))
    need = disk.estimate(10_000_000, config.recipe, facts)
    enough = need.shards + need.temporary
    _set_free(monkeypatch, enough - 500)
    with pytest.raises(UserError, match="out: needs about"):
        disk.check_disk(config, tmp_path / "work", 10_000_000, facts)
    (tmp_path / "work" / "block").write_bytes(bytes(300))
    (tmp_path / "out" / "train.tfrecord-00000-of-00003").write_bytes(bytes(300))
    disk.check_disk(config, tmp_path / "work", 10_000_000, facts)


def test_another_set_s_shards_are_not_counted(tmp_path, config, monkeypatch):
    needed = 1000 * disk.record_bytes(config.recipe)
    _set_free(monkeypatch, needed - 1)
    (tmp_path / "out" / "other.tfrecord-00000-of-00003").write_bytes(bytes(300))
    with pytest.raises(UserError, match="out: the 1,000 examples need about"):
        disk.check_room_for_shards(config, 1000)
    _set_free(monkeypatch, needed)
    disk.check_room_for_shards(config, 1000)


def test_a_large_vocabulary_needs_more_for_its_tokens(config):
    facts = VocabularyFacts.of(Vocabulary.load(config.vocab_file))
    large = dataclasses.replace(facts, size=100_000)
    small_need, large_need = (disk.estimate(10**8, config.recipe, f) for f in (facts, large))
    assert large_need.temporary > small_need.temporary
    assert large_need.shards == small_need.shards
