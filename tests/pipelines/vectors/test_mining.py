"""Mined negatives, held to sentence-transformers 6.2 and to what is said of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.vectors.mining import mine_negatives
from pipelines.vectors.nearest import nearest

MADE = json.loads((Path(__file__).parents[2] / "golden/vectors/retrieval.json").read_text())
QUERIES, DOCUMENTS = (np.array(MADE[name], np.float32) for name in ("queries", "documents"))
POSITIVES = [{int(name[1:]) for name in MADE["relevant"][f"q{i}"]} for i in range(len(QUERIES))]
# Equal vectors are equal texts there.
SAYS = [str(30 if i == 31 else i % 10 if i < 20 else i) for i in range(len(DOCUMENTS))]
TEXTS = [f"query {i}" for i in range(len(QUERIES))], SAYS


@pytest.mark.parametrize("recorded", MADE["mined"], ids=lambda recorded: str(recorded["case"]))
def test_negatives_are_those_of_the_peer(recorded):
    case = recorded["case"]
    found = mine_negatives(
        QUERIES,
        DOCUMENTS,
        POSITIVES,
        count=case["num_negatives"],
        first_rank=case.get("range_min", 0) + 1,
        last_rank=case["range_max"],
        margin=case.get("absolute_margin", -np.inf),
        relative_margin=case.get("relative_margin"),
        texts=TEXTS,
    )
    theirs = dict(recorded["negatives"])
    assert dict(zip(found.queries.tolist(), found.negatives.tolist(), strict=True)) == theirs
    assert len(found.queries) == len(theirs)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 4),
    first_rank=st.integers(1, 4),
    more=st.integers(0, 12),
    margin=st.just(-np.inf) | st.floats(-0.2, 0.5),
    relative_margin=st.none() | st.floats(0, 0.5),
    score=st.sampled_from(["cosine", "dot"]),
)
def test_what_is_said_of_negatives_holds(
    seed, count, first_rank, more, margin, relative_margin, score
):
    draw = np.random.default_rng(seed)
    kinds = draw.integers(-2, 3, (9, 3)) + 0.5
    of_query, of_document = draw.integers(0, 9, 6), draw.integers(0, 9, 25)
    queries, documents = kinds[of_query], kinds[of_document]
    positives = [set(draw.integers(0, 25, draw.integers(1, 4)).tolist()) for _ in queries]
    texts = [f"text {kind}" for kind in of_query], [f"text {kind}" for kind in of_document]
    last_rank = first_rank + count - 1 + more
    found = mine_negatives(
        queries,
        documents,
        positives,
        count=count,
        first_rank=first_rank,
        last_rank=last_rank,
        margin=margin,
        relative_margin=relative_margin,
        texts=texts,
        score=score,
    )

    alike = queries @ documents.T
    if score == "cosine":
        alike /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(documents, axis=1)
    expected, dropped, candidates = {}, 0, 0
    for i, query in enumerate(of_query):
        right = {
            of_document[number]
            for other, some in zip(of_query, positives, strict=True)
            if other == query
            for number in some
        }
        least = min(alike[i, j] for j in range(25) if of_document[j] in right)
        distances = [margin]
        distances += [] if relative_margin is None else [abs(least) * relative_margin]
        first = [of_document.tolist().index(kind) for kind in set(of_document.tolist())]
        others = [j for j in first if of_document[j] not in right | {query}]
        others = sorted(others, key=lambda j: (-np.float32(alike[i, j]), j))[:last_rank]
        most = least - max(distances)
        if any(abs(alike[i, j] - most) < 1e-6 for j in others):
            return  # a last digit decides
        kept = [j for j in others if alike[i, j] <= most]
        candidates += len(others)
        dropped += len(others) - len(kept)
        if len(kept[first_rank - 1 :]) >= count:
            expected[i] = kept[first_rank - 1 :][:count]
    assert dict(zip(found.queries.tolist(), found.negatives.tolist(), strict=True)) == expected
    assert found.share_dropped == pytest.approx(dropped / max(candidates, 1))
    assert len(found.queries) == len(expected)


def test_a_query_with_many_answers_deepens_its_own_search_only(monkeypatch):
    draw, asked = np.random.default_rng(1), []
    vectors = draw.normal(size=(100, 8)).astype("float32")
    positives = [{0}, set(range(90)), {1, 2}, {3}, {4}]
    texts = [f"query {row}" for row in range(5)], [str(row) for row in range(100)]

    def spied(documents, queries, depth, **how):
        asked.append((len(queries), depth))
        return nearest(documents, queries, depth, **how)

    monkeypatch.setattr("pipelines.vectors.mining.nearest", spied)
    monkeypatch.setattr("pipelines.vectors.mining._AT_ONCE", 2)
    found = mine_negatives(vectors[:5], vectors, positives, texts, count=2, last_rank=4)
    assert asked == [(2, 6), (1, 6), (1, 8), (1, 132)]
    assert found.queries.tolist() == [*range(5)]
    assert all(not right & {*some} for right, some in zip(positives, found.negatives, strict=True))


@pytest.mark.parametrize("ranks", [(0, 5), (4, 5), (6, 5)])
def test_ranks_hold_the_negatives(ranks):
    with pytest.raises(ValueError, match="do not hold 3 negatives"):
        mine_negatives(
            QUERIES, DOCUMENTS, POSITIVES, TEXTS, count=3, first_rank=ranks[0], last_rank=ranks[1]
        )


def test_a_query_without_a_positive_is_refused():
    with pytest.raises(ValueError, match="needs a positive"):
        mine_negatives(QUERIES[:2], DOCUMENTS, [{1}, set()], TEXTS, count=1)
