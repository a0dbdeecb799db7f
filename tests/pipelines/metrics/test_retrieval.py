"""Figures of vectors, held to sentence-transformers 6.2, to plain counting, and to themselves."""

import importlib.util
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from keras_bert_impl.errors import UserError
from pipelines.metrics.retrieval import (
    bm25_rankings,
    nearest_accuracy,
    ranking_figures,
    retrieval_figures,
    search_words,
    similarity_figures,
    triplet_accuracy,
)
from tests.support.search_blocks import blocks_of

MADE = json.loads((Path(__file__).parents[2] / "golden/vectors/retrieval.json").read_text())
QUERIES, DOCUMENTS = (np.array(MADE[name], np.float32) for name in ("queries", "documents"))
RELEVANT = [{int(name[1:]) for name in MADE["relevant"][f"q{i}"]} for i in range(len(QUERIES))]


@pytest.mark.parametrize("score", ["cosine", "dot"])
@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_figures_are_those_of_the_peers_evaluator(score, rows):
    with blocks_of(rows):
        found = retrieval_figures(QUERIES, DOCUMENTS, RELEVANT, score)
    assert found == pytest.approx(MADE["figures"][f"{score} by number"], abs=1e-12)


@pytest.mark.parametrize("score", ["cosine", "dot"])
def test_documents_in_the_order_of_their_ids_give_the_peers_ties_by_ids(score):
    order = sorted(range(len(DOCUMENTS)), key=lambda number: f"d{number}")
    place = {number: i for i, number in enumerate(order)}
    relevant = [{place[number] for number in right} for right in RELEVANT]
    found = retrieval_figures(QUERIES, DOCUMENTS[order], relevant, score)
    assert found == pytest.approx(MADE["figures"][f"{score} by id"], abs=1e-12)


def counted(rankings, relevant):
    """The figures by their definitions, one query after the other."""
    sums = dict.fromkeys(MADE["figures"]["dot by id"], 0.0)
    for ranking, right in zip(rankings, relevant, strict=True):
        hits = [number in right for number in ranking]
        for k in (1, 3, 5, 10):
            sums[f"accuracy@{k}"] += any(hits[:k])
            sums[f"precision@{k}"] += sum(hits[:k]) / k
            sums[f"recall@{k}"] += sum(hits[:k]) / len(right)
        sums["mrr@10"] += next((1 / (i + 1) for i, hit in enumerate(hits[:10]) if hit), 0)
        ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(right))))
        sums["ndcg@10"] += sum(hit / math.log2(i + 2) for i, hit in enumerate(hits[:10])) / ideal
        precisions = [sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits[:100]) if hit]
        sums["map@100"] += sum(precisions) / min(100, len(right))
    return {name: total / len(rankings) for name, total in sums.items()}


numbers = st.integers(-3, 3)
rows = st.lists(st.lists(numbers, min_size=3, max_size=3).filter(any), min_size=1, max_size=14)


@settings(max_examples=60, deadline=None)
@given(queries=rows, documents=rows, data=st.data())
def test_made_rankings_with_ties_are_counted_by_the_definitions(queries, documents, data):
    """Small whole numbers make many ties, also of vectors of one direction and other lengths."""
    documents = [*documents, *documents[::2], *([3 * x for x in row] for row in documents[::3])]
    some = st.sets(st.integers(0, len(documents) - 1), max_size=6)
    relevant = data.draw(st.lists(some, min_size=len(queries), max_size=len(queries)))
    relevant[0].add(0)
    rows = data.draw(st.integers(1, len(documents)))
    for score in ("cosine", "dot"):

        def exact(query, document, score=score):
            product = sum(a * b for a, b in zip(query, document, strict=True))
            if score == "dot":
                return product
            return Fraction(product * abs(product), sum(x * x for x in document))

        asked = [(query, right) for query, right in zip(queries, relevant, strict=True) if right]
        rankings = [
            sorted(range(len(documents)), key=lambda i, q=query: (-exact(q, documents[i]), i))
            for query, _ in asked
        ]
        with blocks_of(rows):
            found = retrieval_figures(
                *(np.array(x, np.float32) for x in (queries, documents)), relevant, score
            )
        assert found == pytest.approx(counted(rankings, [right for _, right in asked]), abs=1e-12)


def test_given_rankings_may_be_short_and_long():
    rankings = [[False, True], [], [False] * 120 + [True]]
    found = ranking_figures(rankings, [2, 1, 1])
    assert found["mrr@10"] == pytest.approx(1 / 6)
    assert found["recall@3"] == pytest.approx(1 / 6)
    assert found["map@100"] == pytest.approx(1 / 12)


def test_what_has_no_figure_is_refused():
    with pytest.raises(ValueError, match="a right document"):
        retrieval_figures(QUERIES, DOCUMENTS, [set()] * len(QUERIES))
    with pytest.raises(ValueError, match="20 queries, but relevant documents of 3"):
        retrieval_figures(QUERIES, DOCUMENTS, [{1}] * 3)
    with pytest.raises(ValueError, match="NaN"):
        retrieval_figures(QUERIES * np.nan, DOCUMENTS, RELEVANT)
    with pytest.raises(ValueError, match="'euclidean' is neither"):
        retrieval_figures(QUERIES, DOCUMENTS, RELEVANT, "euclidean")


def test_the_nearest_other_vector_says_a_class():
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.2, 1], [1, 0.05], [1, 0], [1, 0]])
    #  nearest: 5, 4, 3, 2, 0, 0, 0; of the equal 0, 5 and 6 the lower of the others
    assert nearest_accuracy(vectors, list("aabbcab")) == pytest.approx(4 / 7)


def test_a_triplet_is_right_where_its_positive_is_nearer():
    anchors = np.array([[1, 0], [1, 0], [1, 1]])
    near, far = np.array([[2, 1], [0, 1], [5, 5]]), np.array([[1, 2], [1, 0], [1, 1]])
    assert triplet_accuracy(anchors, near, far) == pytest.approx(1 / 3)  # equal ones are not
    assert triplet_accuracy(anchors, near, far, "dot") == pytest.approx(2 / 3)


def test_similarity_is_correlation_with_ties_by_their_mean_rank():
    scores, labels = [0.1, 0.4, 0.4, 0.9, 0.3], [0, 3, 2.5, 5, 2.5]
    found = similarity_figures(scores, labels)
    assert found["spearman"] == pytest.approx(spearmanr(scores, labels).statistic, abs=1e-12)
    assert found["pearson"] == pytest.approx(np.corrcoef(scores, labels)[0, 1], abs=1e-12)
    half = 1.959963984540054 * math.sqrt((1 + found["spearman"] ** 2 / 2) / 2)
    assert math.atanh(found["spearman_high"]) - math.atanh(found["spearman"]) == pytest.approx(half)


def test_the_interval_holds_the_true_correlation_nineteen_times_of_twenty():
    draw, true, n = np.random.default_rng(1), 0.8, 60
    inside = 0
    for _ in range(1000):
        x, y = draw.multivariate_normal([0, 0], [[1, true], [true, 1]], n).T
        found = similarity_figures(x, y)
        inside += found["spearman_low"] < 6 / math.pi * math.asin(true / 2) < found["spearman_high"]
    assert 0.93 < inside / 1000 < 0.97


def test_an_interval_of_nothing_is_no_number_and_of_the_perfect_is_itself():
    assert math.isnan(similarity_figures([1, 2, 3], [1, 2, 3])["spearman_low"])
    assert math.isnan(similarity_figures([1, 1, 1, 1], [1, 2, 3, 4])["spearman_high"])
    found = similarity_figures([1, 2, 3, 4], [4, 3, 2, 1])
    assert found["spearman_low"] == found["spearman_high"] == pytest.approx(-1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Crème brûlée, 2nd—ed_ition!", ["crème", "brûlée", "2nd", "ed", "ition"]),
        ("ＦＵＬＬ Straße", ["full", "strasse"]),
        ("서울 남대문시장에서", ["서울", "울남", "남대", "대문", "문시", "시장", "장에", "에서"]),
        ("東京へ3回 go", ["東京", "京へ", "3", "回", "go"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("soft\u00adly", ["softly"]),
        ("?!", []),
    ],
)
def test_a_text_has_words_to_search_for_in_any_language(text, words):
    assert search_words(text) == words


def test_bm25_ranks_by_lucenes_formula():
    documents = ["the cat sat", "the dog", "a cat and a cat", "nothing", "the cat sat"]

    def score(query, document):
        words, lengths = document.split(), [len(one.split()) for one in documents]
        total = 0.0
        for word in query.split():
            with_it = sum(word in one.split() for one in documents)
            idf = math.log(1 + (len(documents) - with_it + 0.5) / (with_it + 0.5))
            length = 1 - 0.75 + 0.75 * len(words) / (sum(lengths) / len(lengths))
            total += idf * words.count(word) / (words.count(word) + 1.2 * length)
        return total

    for query in ("cat", "the cat", "a dog sat", "cat cat the"):
        scores = [score(query, document) for document in documents]
        order = sorted((i for i in range(5) if scores[i]), key=lambda i: (-scores[i], i))
        assert bm25_rankings([query], documents, 10) == [order]
        assert bm25_rankings([query], documents, 2) == [order[:2]]
    assert bm25_rankings(["zebra", "", "?"], documents, 3) == [[], [], []]
    assert bm25_rankings(["zebra"], ["", "!"], 3) == [[]]


def test_without_its_library_bm25_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"BM25 needs the package bm25s, .* pip install"):
        bm25_rankings(["a"], ["a"], 1)
