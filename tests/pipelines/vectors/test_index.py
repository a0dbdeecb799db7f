"""An index of vectors."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import owned
from pipelines.vectors.index import VectorIndex
from pipelines.vectors.options import COSINE, DOT
from tests.support.damage import other_files


def vectors_of(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 8)).astype("float32")


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([COSINE, DOT]), st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_the_scores_are_those_of_all_vectors_however_they_were_added(
    tmp_path_factory, metric, counts
):
    folder, given_ones = tmp_path_factory.mktemp("x") / "index", vectors_of(sum(counts))
    index, start = VectorIndex.create(folder, size=8, metric=metric), 0
    for count in counts:
        index.add(vectors=given_ones[start : start + count])
        start += count
    query = vectors_of(2, seed=1)
    every = query @ given_ones.T
    if metric == COSINE:
        every /= np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(given_ones, axis=1)
    for one in (index, VectorIndex.open(folder)):
        for found, scores in zip(one.search(query, 5), every, strict=True):
            best = np.argsort(-scores)[:5]
            assert [row.id for row in found] == [n + 1 for n in best]
            np.testing.assert_allclose([row.score for row in found], scores[best], atol=1e-5)


@pytest.fixture
def index(tmp_path):
    return VectorIndex.create(tmp_path / "index", size=8)


def test_a_graph_answers_for_its_rows_and_the_rest_is_looked_at(index, tmp_path):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(2000))
    recall = index.build()
    assert recall["rows"] == 2000
    assert recall["recall"] >= 0.99
    assert VectorIndex.open(tmp_path / "index").recall == recall
    index.add(["the new one"], ids=["new"], vectors=vectors_of(1, seed=7))
    (found,) = index.search(vectors_of(1, seed=7), 3)
    assert found[0][::2] == ("new", "the new one")
    for _ in range(2):
        (exact,) = index.search(vectors_of(1, seed=7), 3, exact=True)
        (found,) = index.search(vectors_of(1, seed=7), 3)
        assert [one.id for one in found] == [one.id for one in exact]
        assert [one.score for one in found] == pytest.approx([one.score for one in exact])
        assert index.build()["rows"] == 2001


def test_the_recall_is_that_of_the_graph_over_its_own_vectors(index, monkeypatch):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(2400))
    # A graph with few links, of which a search has to look at many.
    monkeypatch.setattr("pipelines.vectors.nearest._LINKS", 3)
    monkeypatch.setattr("pipelines.vectors.nearest._EF_OF_BUILDING", 3)
    monkeypatch.setattr("pipelines.vectors.index.LEAST_EF", 1)
    recall = index.build()
    asked = np.unique(np.linspace(0, 2399, 1000).astype(int))
    queries = index._files.vectors[asked]
    shares = []
    found = [[one.id - 1 for one in some] for some in index.search(queries, 11)]
    exact = [[one.id - 1 for one in some] for some in index.search(queries, 11, exact=True)]
    for own, some, right in zip(asked, found, exact, strict=True):
        shares.append(len({*some} & {*right} - {own}) / 10)
    assert recall["ef"] > 1
    assert recall["recall"] == pytest.approx(np.mean(shares), abs=0.002)


@pytest.mark.parametrize(
    ("given_ones", "sentence"),
    [
        ({"vectors": np.zeros([2, 7])}, r"holds vectors of 8 numbers, and is given \[2, 7\]"),
        ({"vectors": np.full([1, 8], np.nan)}, "NaN or infinite"),
        ({"vectors": np.zeros([2, 8]), "texts": ["a"]}, "`texts`: there are 1 for 2 rows"),
        ({"vectors": np.zeros([2, 8]), "ids": [1, 2, 3]}, "`ids`: there are 3 for 2 rows"),
        ({"texts": ["a"]}, "without its model an index takes vectors only"),
    ],
)
def test_what_is_added_must_fit(index, given_ones, sentence):
    with pytest.raises(UserError, match=sentence):
        index.add(**given_ones)
    assert len(index) == 0


def test_two_do_not_add_at_the_same_time(index, tmp_path):
    with owned(tmp_path / "index" / ".lock", ""), pytest.raises(UserError, match="another process"):
        index.add(vectors=vectors_of(1))


def test_an_index_is_made_in_a_new_folder_only(index, tmp_path):
    with pytest.raises(UserError, match="is there already"):
        VectorIndex.create(tmp_path / "index", size=8)
    with pytest.raises(UserError, match="is no index"):
        VectorIndex.open(tmp_path)


def test_a_damaged_description_is_used_or_refused_in_one_sentence(index, tmp_path):
    for _ in other_files(tmp_path / "index" / "description.json"):
        with contextlib.suppress(UserError):
            VectorIndex.open(tmp_path / "index")
