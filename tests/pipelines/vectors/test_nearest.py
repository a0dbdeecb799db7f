"""The nearest vectors: all looked at, and by a graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.vectors import nearest as module
from pipelines.vectors.nearest import Graph, grow_graph, nearest, read_links, unit


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.integers(0, 99))
def test_the_nearest_are_those_of_all_scores_the_earlier_first(count, wanted, levels, cosine, seed):
    draws = np.random.default_rng(seed)
    # Whole numbers, of which many scores are equal.
    vectors, queries = (
        draws.integers(-levels, levels + 1, (n, 4)).astype("float32") for n in (count, 3)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", 16 * 7)  # blocks of seven vectors
        patch.setattr(module, "_QUERIES_AT_ONCE", 2)
        numbers, scores = nearest(vectors, queries, wanted, cosine=cosine)
    every = queries @ vectors.T
    if cosine:
        lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
        every = every / np.maximum(lengths, 1e-12)
    np.testing.assert_allclose(scores, -np.sort(-every, axis=1)[:, :wanted], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(every, numbers, axis=1), scores, atol=1e-6)
    if not cosine:  # whose roundings make equal ones differ
        np.testing.assert_array_equal(
            numbers, np.argsort(-every, axis=1, kind="stable")[:, :wanted]
        )


pytest.importorskip("faiss")


def made(rows, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(rows, 16)).astype("float32"))


def test_a_graph_finds_what_all_have_and_grows_to_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 64)
    vectors, path = made(600), tmp_path / "graph"
    grow_graph(path, vectors[:300], lambda _: None)
    counts = []
    grow_graph(path, vectors, counts.append)
    assert sum(counts) == 300
    graph = Graph(read_links(path, vectors), vectors)
    assert graph.rows == 600
    numbers, products = graph.search(vectors[:50], 5, ef=200)
    exact, scores = nearest(vectors, vectors[:50], 5)
    assert np.mean(numbers == exact) > 0.98
    np.testing.assert_allclose(products[:, 0], scores[:, 0], atol=1e-6)


def test_a_stopped_building_goes_on_with_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 64)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", -1.0)
    vectors, path, counts = made(300), tmp_path / "graph", []

    def stop(count):
        counts.append(count)
        if len(counts) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grow_graph(path, vectors, stop)
    assert Graph(read_links(path, vectors), vectors).rows == 128
    counts.clear()
    grow_graph(path, vectors, counts.append)
    assert sum(counts) == 300 - 128


def test_a_damaged_graph_is_one_sentence(tmp_path):
    path = tmp_path / "graph"
    grow_graph(path, made(50), lambda _: None)
    whole = path.read_bytes()
    for content in (b"", whole[:3], whole[:-1], whole[:99] + b"?" + whole[100:]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"graph: .*remove it"):
            read_links(path, made(50))


def test_a_graph_of_other_vectors_or_another_index_is_one_sentence(tmp_path):
    import faiss

    path = tmp_path / "graph"
    grow_graph(path, made(50), lambda _: None)
    whole = path.read_bytes()
    for others in (made(49), made(50, seed=1), made(50)[:, :8]):
        with pytest.raises(UserError, match=r"graph: is damaged, or the graph of other vectors"):
            read_links(path, others)
        with pytest.raises(UserError, match="of other vectors"):
            grow_graph(path, others, lambda _: None)
    more = np.concatenate([made(50), made(9, seed=1)])
    assert Graph(read_links(path, more), more).rows == 50
    for other in (faiss.IndexHNSWFlat(16, 32, faiss.METRIC_L2), faiss.IndexFlatIP(16)):
        other.add(made(50))
        content = faiss.serialize_index(other)
        end = (50).to_bytes(8, "little") + module._digest(content, made(50))
        path.write_bytes(content.tobytes() + end)
        with pytest.raises(UserError, match="of other vectors"):
            read_links(path, made(50))
    path.write_bytes(whole)
    read_links(path, made(50))
