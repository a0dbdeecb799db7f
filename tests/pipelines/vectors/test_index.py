"""An index of vectors."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import owned
from keras_bert_impl.serving.embedder import Embedder
from pipelines.vectors.index import VectorIndex
from pipelines.vectors.index_files import IndexFiles
from pipelines.vectors.nearest import grow_graph, pair_scores, read_links
from pipelines.vectors.options import COSINE, DOT
from tests.support.damage import other_files
from tests.support.model_folders import write_prompted


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


def test_an_index_that_grows_while_it_is_opened_has_its_new_graph(index, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(300))
    index.build()
    grown = []

    def read(path, vectors, **how):
        if not grown:
            grown.append(True)
            index.add(vectors=vectors_of(5, seed=1))
            index.build()
        return read_links(path, vectors, **how)

    monkeypatch.setattr("pipelines.vectors.index.read_links", read)
    assert VectorIndex.open(tmp_path / "index").recall["rows"] == 305


def test_a_graph_stays_as_it_is_while_rows_are_added(index):
    """Another thread may be searching by it."""
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(300))
    index.build()
    graph, storage = index._graph, index._graph._links.storage.this
    index.add(vectors=vectors_of(1, seed=1))
    assert index._graph is graph
    assert graph._links.storage.this == storage


def test_a_graph_of_all_rows_is_not_built_again_and_waits_for_no_process(index, tmp_path):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(30))
    recall, lock = index.build(), tmp_path / "index" / ".lock"
    with owned(lock, ""):
        assert VectorIndex.open(tmp_path / "index").build() == recall
        with pytest.raises(UserError, match="another process adds to it"):
            index.build(wanted=0.5)


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


def test_a_search_is_as_wide_as_the_recall_that_is_wanted_and_the_index_keeps_that(
    index, tmp_path, monkeypatch
):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(2400))
    monkeypatch.setattr("pipelines.vectors.nearest._LINKS", 3)
    monkeypatch.setattr("pipelines.vectors.nearest._EF_OF_BUILDING", 3)
    monkeypatch.setattr("pipelines.vectors.index.LEAST_EF", 1)
    usual, less = index.build(), index.build(wanted=0.5)
    assert 0.5 <= less["recall"] < usual["recall"]
    assert less["ef"] < usual["ef"]
    assert index.build() == less == VectorIndex.open(tmp_path / "index").build()
    assert index.build(wanted=0.99) == usual


def test_what_another_process_wanted_of_the_graph_stays(index, tmp_path):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(30))
    index.build()
    VectorIndex.open(tmp_path / "index").build(wanted=0.5)
    index.add(vectors=vectors_of(1))
    assert index.build()["wanted"] == 0.5 == VectorIndex.open(tmp_path / "index").recall["wanted"]


@pytest.mark.parametrize("wanted", [0, -1, 95, float("nan"), "0.9"])
def test_a_recall_that_is_none_is_refused(index, wanted):
    index.add(vectors=vectors_of(3))
    with pytest.raises(UserError, match=r"a recall is more than 0 and at most 1; .* is none"):
        index.build(wanted=wanted)


def test_the_recall_is_the_same_whatever_the_size_of_the_scores(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr("pipelines.vectors.nearest._LINKS", 3)
    monkeypatch.setattr("pipelines.vectors.nearest._EF_OF_BUILDING", 3)
    monkeypatch.setattr("pipelines.vectors.index.LEAST_EF", 1)
    found = []
    for power in (0, -14, 14):
        index = VectorIndex.create(tmp_path / str(power), size=8, metric=DOT)
        index.add(vectors=vectors_of(1000) * np.float32(2**power))
        found.append(index.build())
    assert found[0]["ef"] > 1
    assert found == found[:1] * 3


def test_a_graph_whose_recall_is_not_known_is_not_used(index, tmp_path):
    pytest.importorskip("faiss")
    index.add(vectors=vectors_of(300))
    index.build()
    grown, folder = VectorIndex.open(tmp_path / "index"), tmp_path / "index"
    grown.add(vectors=vectors_of(5, seed=1))
    grow_graph(folder / "graph", grown._files.vectors, lambda _: None)  # and is killed
    opened = VectorIndex.open(folder)
    assert opened.recall is None
    opened._graph.search = None
    assert len(opened.search(vectors_of(1), 3)[0]) == 3
    assert opened.build()["rows"] == 305 == opened.recall["rows"]


def test_of_equal_ones_the_earlier_comes_first_with_a_graph_too(index):
    pytest.importorskip("faiss")
    given_ones = np.repeat(np.eye(8, dtype="float32"), 3, axis=0)
    index.add(vectors=given_ones)
    index.build()
    index.add(vectors=given_ones)
    asked = {"queries": given_ones[::3], "top_k": 6}
    exact = index.search(**asked, exact=True)
    assert index.search(**asked) == exact
    assert [one.id for one in exact[0]] == [1, 2, 3, 25, 26, 27]


@pytest.mark.parametrize("top_k", [0, -1, 1.5, "3", None])
def test_how_many_are_found_is_a_whole_number(index, top_k):
    with pytest.raises(UserError, match=r"`top_k=.*` must be a whole number from 1 on"):
        index.search(vectors_of(1), top_k)


@pytest.mark.parametrize("similarity", [COSINE, DOT])
def test_a_model_is_searched_as_its_files_say_and_documents_have_their_own_prompt(
    tmp_path, similarity
):
    given = {
        "similarity": similarity,
        "normalize": False,
        "prompt": "a ",
        "prompts": {"query": "a "},
    }
    index = VectorIndex.create(
        tmp_path / "index", str(write_prompted(tmp_path / "model", **given)), size=16
    )
    texts = ["the dog", "a list of words", "cat"]
    index.add(texts)
    embedder = Embedder.from_pretrained(tmp_path / "model")
    queries, documents = embedder.embed(["the dog"], "query"), embedder.embed(texts, "document")
    assert not np.allclose(queries[0], documents[0])
    expected = pair_scores(np.repeat(queries, 3, axis=0), documents, similarity)
    (found,) = index.search(["the dog"])
    assert [one.text for one in found] == [texts[n] for n in np.argsort(-expected)]
    assert [one.score for one in found] == pytest.approx(sorted(expected, reverse=True))


def test_a_prompt_that_is_given_stands_before_texts_and_queries(tmp_path):
    folder = write_prompted(tmp_path / "model")
    embedder = Embedder.from_pretrained(folder, prompt="a value ")
    index = VectorIndex.create(tmp_path / "index", embedder)
    index.add(["the dog"])
    ((found,),) = index.search(["the dog"])
    assert found.score == pytest.approx(1.0)
    with pytest.raises(UserError, match="was made with another prompt"):
        VectorIndex.open(tmp_path / "index", str(folder))


@pytest.mark.parametrize("pooling", ["mean", "pooler"])
def test_the_model_of_an_index_is_known_by_its_present_weights(model, tmp_path, pooling):
    embedder = Embedder.from_pretrained(model, pooling=pooling)
    untrained = VectorIndex.create(tmp_path / "untrained", embedder)
    untrained.check_model(find_model(model), embedder.settings)
    embedder.model.encoder.pooler.weights[0].assign_add(np.ones([16, 16]))
    embedder.model.weights[0].assign_add(np.ones(embedder.model.weights[0].shape))
    with pytest.raises(UserError, match="was made with another model"):
        VectorIndex.open(tmp_path / "untrained", embedder)
    of_no_file = Embedder(embedder.model, embedder.text, embedder.settings)
    trained = VectorIndex.create(tmp_path / "trained", of_no_file)
    embedder.save_pretrained(tmp_path / "model")
    trained.check_model(find_model(tmp_path / "model"), embedder.settings)


def test_queries_are_texts_or_vectors_in_any_container(index):
    index.add(vectors=vectors_of(3))
    found = index.search(vectors_of(2, seed=1))
    assert index.search(iter(vectors_of(2, seed=1))) == found
    for other in (None, 5, [None], [[1], [1, 2]], [[1.0] * 8, "a"]):
        with pytest.raises(UserError):
            index.search(other)


def test_an_empty_index_has_no_graph(index):
    with pytest.raises(UserError, match="has no vectors to link"):
        index.build()


def test_ids_of_numpy_come_back_as_numbers(index):
    ids = [np.int32(5), np.uint64(2**64 - 1), "a", -(2**63)]
    index.add(ids=ids[:2], vectors=vectors_of(2))
    index.add(iter(["x", None]), ids=ids[2:], vectors=vectors_of(2, seed=1))
    (found,) = index.search(vectors_of(1), 4)
    assert sorted(map(str, (one.id for one in found))) == sorted(map(str, map(str, ids)))


def test_a_text_of_ids_is_one_of_each_character_but_a_text_is_one(index):
    index.add("x", ids="a", vectors=vectors_of(1))
    index.add(ids="bcd", vectors=vectors_of(3, seed=1))
    (found,) = index.search(vectors_of(1), 4)
    assert sorted(one.id for one in found) == ["a", "b", "c", "d"]
    assert found[0].text == "x"


@pytest.mark.parametrize(
    ("given_ones", "sentence"),
    [
        ({"vectors": np.zeros([2, 7])}, r"holds vectors of 8 numbers, and is given \[2, 7\]"),
        ({"vectors": np.full([1, 8], np.nan)}, "may be NaN, infinite"),
        ({"vectors": np.zeros([2, 8]), "texts": ["a"]}, "`texts`: there are 1 for 2 rows"),
        ({"vectors": np.zeros([2, 8]), "ids": [1, 2, 3]}, "`ids`: there are 3 for 2 rows"),
        ({"vectors": [[1], [1, 2]]}, "are a table of numbers"),
        ({"vectors": None, "texts": 5}, "`texts`: 5 is not a text"),
        ({"vectors": [["a"] * 8]}, "are a table of numbers"),
        ({"vectors": np.full([1, 8], 1e30)}, "too large to be multiplied"),
        ({"vectors": np.full([1, 8], 1e300)}, "too large to be multiplied"),
        ({"vectors": np.zeros([1, 8]), "texts": [b"a"]}, "`texts`: b'a' is not a text"),
        ({"vectors": np.zeros([1, 8]), "ids": [2**64]}, "is not a text or a whole number of 64"),
        ({"vectors": np.zeros([1, 8]), "ids": [1.5]}, "`ids`: 1.5 is not a text or a whole"),
        ({"vectors": np.zeros([1, 8]), "ids": [None]}, "`ids`: None is not a text or a whole"),
        ({"vectors": np.zeros([1, 8]), "ids": [True]}, "`ids`: True is not a text or a whole"),
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


def test_an_index_that_another_process_makes_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    make, folder = IndexFiles.make, tmp_path / "new"

    def late(new):
        make(new)
        folder.mkdir()
        (folder / "rows").write_text("theirs")

    monkeypatch.setattr(IndexFiles, "make", late)
    with pytest.raises(UserError, match="new: is there already"):
        VectorIndex.create(folder, size=8)
    assert (folder / "rows").read_text() == "theirs"
    assert [*tmp_path.iterdir()] == [folder]


def test_an_empty_folder_becomes_an_index(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert len(VectorIndex.create(tmp_path / "link", size=8)) == 0
    assert len(VectorIndex.open(tmp_path / "empty")) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"model": {}},
        {"model": {"sizes": []}},
        {"model": {"sizes": {"hidden_size": "16"}}},
        {"size": 2**62},
        {"graph": {"rows": 0, "ef": 2**40, "recall": 1.0, "queries": 1}},
        {"graph": {"rows": 0, "ef": 64, "recall": 1.5, "queries": 1}},
        {"graph": {"rows": 0, "ef": 64, "recall": 1.0, "queries": 1, "wanted": 0}},
    ],
)
def test_a_description_of_another_shape_is_one_sentence(index, tmp_path, change):
    path = tmp_path / "index" / "description.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=r"description\.json: .*remove the folder"):
        VectorIndex.open(tmp_path / "index")


def test_a_damaged_description_is_used_or_refused_in_one_sentence(index, tmp_path):
    for _ in other_files(tmp_path / "index" / "description.json"):
        with contextlib.suppress(UserError):
            VectorIndex.open(tmp_path / "index")
