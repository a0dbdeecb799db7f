import itertools
from pathlib import Path

import numpy as np
import pytest

from pipelines.pretraining_data.draws import key_ranges
from pipelines.pretraining_data.recipe import Recipe
from pipelines.runners import plans
from pipelines.runners.corpus import Corpus

ALL_KEYS = (0, 1 << 64)


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
    tasks = plans.plan_tasks(corpus, recipe, folder)
    return [(task.target, plans.plan_batch(task)) for task in tasks]


@pytest.mark.parametrize(("sentences", "copies"), [(1, 1), (40, 3), (100, 25), (10**6, 4)])
def test_every_document_is_planned_once_in_every_copy(
    tmp_path, corpus, monkeypatch, sentences, copies
):
    monkeypatch.setattr(plans, "_SENTENCES_AT_ONCE", sentences)
    tasks = plans.plan_tasks(corpus, Recipe(dupe_factor=copies), tmp_path)
    planned = [
        pair
        for task in tasks
        for pair in itertools.product(
            range(task.first_document, task.end_document), range(task.first_copy, task.end_copy)
        )
    ]
    assert sorted(planned) == list(itertools.product(range(30), range(copies)))
    assert len({task.target for task in tasks}) == len(tasks)


def test_batches_bound_the_sentences_that_are_planned_at_once(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(plans, "_SENTENCES_AT_ONCE", 60)
    bounds = corpus.document_bounds().array
    for task in plans.plan_tasks(corpus, Recipe(dupe_factor=3), tmp_path):
        sentences = bounds[task.end_document] - bounds[task.first_document]
        assert 3 * sentences <= 60


def test_the_size_of_batches_changes_no_example(tmp_path, corpus, monkeypatch):
    recipe = Recipe(max_seq_length=20, dupe_factor=12)
    at_once = plans.planned_between(_planned(corpus, recipe, tmp_path / "a"), *ALL_KEYS)
    monkeypatch.setattr(plans, "_SENTENCES_AT_ONCE", 70)
    parts = plans.planned_between(_planned(corpus, recipe, tmp_path / "b"), *ALL_KEYS)
    for name, column in at_once.columns().items():
        assert (column == parts.columns()[name]).all(), name


def test_ranges_of_keys_divide_the_examples_in_their_order(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(plans, "_SENTENCES_AT_ONCE", 70)
    plan = _planned(corpus, Recipe(max_seq_length=20, dupe_factor=3), tmp_path / "plan")
    whole = plans.planned_between(plan, *ALL_KEYS)
    assert (np.diff(whole.keys.astype(object)) > 0).all()
    assert len(whole) == sum(examples for _, examples in plan)
    parts = [plans.planned_between(plan, *ends) for ends in key_ranges(*ALL_KEYS, 7)]
    for name, column in whole.columns().items():
        assert (np.concatenate([part.columns()[name] for part in parts]) == column).all(), name


@pytest.mark.parametrize("damage", ["no end", "no plan", "truncated"])
def test_an_interrupted_batch_is_not_counted(tmp_path, corpus, damage):
    ((target, examples),) = _planned(corpus, Recipe(max_seq_length=20, dupe_factor=2), tmp_path)
    assert plans.planned_count(target) == examples > 0
    path = Path(target)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        (path if damage == "no plan" else path.with_suffix(".json")).unlink()
    assert plans.planned_count(target) is None
