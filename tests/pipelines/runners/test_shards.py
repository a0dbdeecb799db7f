import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.pretraining_data.recipe import Recipe, VocabularyFacts
from pipelines.records.reader import RecordReader
from pipelines.runners import local, shards
from pipelines.runners.corpus import Corpus, find_corpus
from tests.support.pretraining_corpus import RECIPE, make_shards


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    """Thirty documents of one to seven sentences of one to nine tokens."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 8, 30)
    lengths = rng.integers(1, 10, sizes.sum())
    ids = np.arange(lengths.sum(), dtype=np.uint16)
    (tmp_path / "ids.bin").write_bytes(ids.tobytes())
    (tmp_path / "sentences.bin").write_bytes(np.cumsum([0, *lengths]).astype(np.int64).tobytes())
    (tmp_path / "documents.bin").write_bytes(np.cumsum([0, *sizes]).astype(np.int64).tobytes())
    return Corpus(str(tmp_path), "uint16", len(ids), len(lengths), 30, 1, "", 1, 0)


def _planned(corpus: Corpus, recipe: Recipe, folder: Path) -> list[tuple[str, int]]:
    folder.mkdir(exist_ok=True)
    tasks = shards.plan_tasks(corpus, recipe, folder)
    return [(task.target, shards.plan_batch(task)) for task in tasks]


@pytest.mark.parametrize(("sentences", "copies"), [(40, 3), (10**6, 4)])
def test_every_document_is_planned_once_in_every_copy(
    tmp_path, corpus, monkeypatch, sentences, copies
):
    monkeypatch.setattr(shards, "_SENTENCES_AT_ONCE", sentences)
    tasks = shards.plan_tasks(corpus, Recipe(dupe_factor=copies), tmp_path)
    planned = [pair for task in tasks for pair in itertools.product(task.documents, task.copies)]
    assert sorted(planned) == list(itertools.product(range(30), range(copies)))
    assert len({task.target for task in tasks}) == len(tasks)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> list[shards.ShardTask]:
    """The shards of the tiny corpus as tasks, from a corpus that was kept."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(local, "_remove_work", lambda folder: None)
        make_shards(folder)
    corpus = find_corpus(next((folder / "out" / ".train.tfrecord.work").glob("tokens-*")))
    assert corpus is not None
    plan = [
        (task.target, shards.plan_batch(task)) for task in shards.plan_tasks(corpus, RECIPE, folder)
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
