import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.records.reader import RecordReader
from pipelines.runners import plans, shards
from pipelines.runners.corpus import find_corpus
from tests.support.pretraining_corpus import RECIPE, make_shards


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> list[shards.ShardTask]:
    """The shards of the tiny corpus as tasks, from a corpus that was kept."""
    folder = tmp_path_factory.mktemp("kept")
    make_shards(folder, work_folder=str(folder / "work"))
    corpus = find_corpus(next((folder / "work").glob("tokens-*")))
    assert corpus is not None
    plan = [
        (task.target, plans.plan_batch(task)) for task in plans.plan_tasks(corpus, RECIPE, folder)
    ]
    facts = VocabularyFacts.of(Vocabulary.load(folder / "vocab.txt"))
    return [
        shards.ShardTask(
            corpus, RECIPE, facts, plan, number, 3, str(folder / f"x-{number}"),
            str(folder / f"note-{number}"),
        )
        for number in range(3)
    ]  # fmt: skip


def test_shards_of_any_number_hold_the_same_records(tasks, tmp_path):
    for task in tasks:
        shards.write_shard(task)
    one = dataclasses.replace(
        tasks[0], of=1, target=str(tmp_path / "one"), note=str(tmp_path / "note")
    )
    shards.write_shard(one)
    parts, whole = RecordReader([task.target for task in tasks]), RecordReader([one.target])
    assert len(parts) == len(whole) == sum(examples for _, examples in one.plan)
    every = np.arange(len(whole))
    assert parts.read(every) == whole.read(every)


def test_memory_is_bounded_without_changing_a_byte(tasks, tmp_path, monkeypatch):
    expected = shards.write_shard(tasks[1])
    monkeypatch.setattr(shards, "_EXAMPLES_AT_ONCE", 7)
    there = {"target": str(tmp_path / "x-1"), "note": str(tmp_path / "note")}
    assert shards.write_shard(dataclasses.replace(tasks[1], **there)) == expected


def test_a_finished_shard_is_known_by_its_note(tasks):
    entry = shards.write_shard(tasks[2])
    assert shards.finished_shard(tasks[2]) == entry
    assert json.loads(Path(tasks[2].note).read_text())["entry"]["counts"] == entry.counts


@pytest.mark.parametrize("damage", ["no note", "no shard", "no index", "truncated", "altered"])
def test_a_shard_that_is_not_what_it_was_is_not_finished(tasks, damage):
    task = tasks[0]
    shards.write_shard(task)
    target = Path(task.target)
    if damage == "no note":
        Path(task.note).unlink()
    elif damage == "no shard":
        target.unlink()
    elif damage == "no index":
        Path(f"{target}.index").unlink()
    else:
        data = bytearray(target.read_bytes())
        data[40] ^= 1
        target.write_bytes(data if damage == "altered" else data[:-1])
    assert shards.finished_shard(task) is None
