"""The nearest vectors: all looked at, and by a graph."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.smaller_vectors import unit
from pipelines.vectors import nearest as module
from pipelines.vectors.nearest import Graph, grow_graph, nearest, pair_scores, read_links
from tests.support.search_blocks import blocks_of


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 70),
    count=st.integers(1, 300),
    wanted=st.integers(1, 120),
    rows=st.integers(1, 300),
)
def test_the_nearest_are_those_of_all_scores_the_earlier_first(seed, width, count, wanted, rows):
    """Whatever the size of a block; a third of the vectors are different ones."""
    draw = np.random.default_rng(seed)
    queries = draw.standard_normal((3, width)).astype(np.float32)
    different = draw.standard_normal(((count + 2) // 3, width)).astype(np.float32)
    vectors = different[draw.integers(0, len(different), count)]
    for score in ("cosine", "dot"):
        with blocks_of(rows):
            numbers, scores = nearest(vectors, queries, wanted, score=score)
        every = np.stack([pair_scores(np.tile(one, (count, 1)), vectors, score) for one in queries])
        best = np.argsort(-every, axis=1, kind="stable")[:, :wanted]
        np.testing.assert_array_equal(numbers, best)
        np.testing.assert_array_equal(scores, np.take_along_axis(every, best, axis=1))


@pytest.mark.parametrize("equal", [False, True])
def test_memory_is_that_of_a_block(monkeypatch, equal):
    draw = np.random.default_rng(5)
    queries = draw.standard_normal((600, 4)).astype(np.float32)
    vectors = draw.standard_normal((6000, 4)).astype(np.float32)
    vectors = vectors[np.argsort(vectors @ queries[0])]  # each block is better than those before
    if equal:
        vectors[:] = vectors[-1]
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1 << 18)
    tracemalloc.start()
    nearest(vectors, queries, 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6e6 < 4 * len(queries) * len(vectors)


def test_of_equal_vectors_only_those_that_can_win_are_compared_exactly(monkeypatch):
    draw = np.random.default_rng(5)
    queries = draw.standard_normal((8, 32)).astype(np.float32)
    vectors = draw.standard_normal((4000, 32)).astype(np.float32)
    vectors[1::4], vectors[2::4] = queries[5], queries[3]
    compared = []

    def watched(left, right, score):
        compared.append(len(right))
        return pair_scores(left, right, score)

    monkeypatch.setattr(module, "pair_scores", watched)
    numbers, _ = nearest(vectors, queries, 5)
    assert numbers[3].tolist() == [2, 6, 10, 14, 18]
    assert numbers[5].tolist() == [1, 5, 9, 13, 17]
    assert sum(compared) < 1000


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e20, 1e37])
def test_a_cosine_is_that_of_vectors_of_any_size(size):
    vectors = np.array([[1, -1], [4, 3], [3, 4]], np.float32) * np.float32(size)
    for queries in (vectors[2:], vectors[2:] / np.float32(size)):
        with blocks_of(1):
            (number,), (cosine,) = (one.ravel() for one in nearest(vectors, queries, 1))
        assert (number, cosine) == (2, 1.0)


def test_a_product_that_is_too_large_is_said():
    vectors = np.full((1, 4), 1e30, np.float32)
    with pytest.raises(module.NotComparableError, match="too large to be multiplied"):
        nearest(vectors, vectors, 1, score="dot")


@pytest.mark.parametrize("place", [0, 20])
def test_vectors_that_are_no_numbers_are_refused(place):
    vectors = np.ones((30, 4), np.float32)
    vectors[place, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        nearest(vectors, vectors[5:6], 3)


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


def test_a_graph_that_is_saved_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path, digest, saves = tmp_path / "graph", module._digest, []

    def late(content, vectors):
        found = digest(content, vectors)
        if not saves:
            saves.append(1)
            grow_graph(path, made(60), lambda _: None)
        return found

    grow_graph(path, made(60)[:50], lambda _: None)
    monkeypatch.setattr(module, "_digest", late)
    assert read_links(path, made(60)).ntotal == 60


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
        end = (50).to_bytes(8, "little") + module._digest(content, made(50)).to_bytes(4, "little")
        path.write_bytes(content.tobytes() + end)
        with pytest.raises(UserError, match="of other vectors"):
            read_links(path, made(50))
    path.write_bytes(whole)
    read_links(path, made(50))
