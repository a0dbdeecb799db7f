"""Hard negatives: documents near a query that are not its answers, for training to tell apart."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.vectors.nearest import nearest, pair_scores
from pipelines.vectors.options import COSINE


class MinedNegatives(NamedTuple):
    """What `mine_negatives` found.

    Attributes:
        queries: int64 [found], the numbers of the queries that have enough negatives, ascending.
        negatives: int64 [found, count], the numbers of their negatives, the nearest first.
        num_too_few: how many queries are left out because too few candidates remained.
        share_dropped: the share of the candidates that a margin dropped, as probably positive.
    """

    queries: NDArray[np.int64]
    negatives: NDArray[np.int64]
    num_too_few: int
    share_dropped: float


def mine_negatives(
    queries: NDArray,
    documents: NDArray,
    positives: Sequence[Collection[int]],
    *,
    count: int,
    first_rank: int = 1,
    last_rank: int = 100,
    margin: float | None = None,
    relative_margin: float | None = None,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
    score: str = COSINE,
) -> MinedNegatives:
    """The nearest documents of each query that are not its positives, by an exact search.

    A query's candidates are its `last_rank` nearest documents, positives not counted. Margins drop
    some, and the first of what is left has rank 1, as in `mine_hard_negatives` of
    sentence-transformers 6.2: the negatives are those of the ranks `first_rank` and following.

    Args:
        queries: [queries, width].
        documents: [documents, width].
        positives: the numbers of each query's right documents.
        count: how many negatives a query gets; one with fewer is left out.
        first_rank: leaves out that many nearest candidates less one, which may be right answers.
        last_rank: how many candidates a query has.
        margin: a negative's score is at most that of the query's farthest positive less this.
        relative_margin: the same with this share of that score's size; 0.05 is what NV-Retriever
            found best (Moreira et al. 2024, arXiv:2407.15831, "TopK-PercPos").
        texts: what the queries and the documents say. Equal queries share their positives, equal
            documents are one, the first, and what says the same as a query is no negative of it.
        score: what vectors are compared by.

    Example:
        >>> documents = np.array([[5, 0], [4, 1], [4, 2], [0, 1]])
        >>> mine_negatives(documents[:1], documents, [{0}], count=1, margin=0.05).negatives
        array([[2]])
    """
    if not 1 <= first_rank <= last_rank - count + 1 <= last_rank:
        raise ValueError(f"the ranks {first_rank} to {last_rank} do not hold {count} negatives")
    if not all(positives):
        raise ValueError("each query needs a positive, or its negatives might be right answers")
    # Without texts each is another: numbers stand for them.
    query_texts: Sequence[str | int] = texts[0] if texts else range(-len(queries), 0)
    document_texts: Sequence[str | int] = texts[1] if texts else range(len(documents))
    first = dict[str | int, int]()
    for number, text in enumerate(document_texts):
        first.setdefault(text, number)
    searched = np.array(list(first.values()))
    place = {text: number for number, text in enumerate(first)}
    right = defaultdict[str | int, set[int]](set)
    for text, known in zip(query_texts, positives, strict=True):
        right[text].update(place[document_texts[number]] for number in known)
    never = {text: {*known, place.get(text, -1)} for text, known in right.items()}

    distinct = documents[searched]
    depth = last_rank + max(map(len, never.values()))
    found, negatives, num_candidates, num_dropped = list[int](), list[NDArray](), 0, 0
    rows = zip(query_texts, *nearest(distinct, queries, depth, score=score), strict=True)
    for row, (text, numbers, scores) in enumerate(rows):
        candidates = np.flatnonzero(~np.isin(numbers, list(never[text])))[:last_rank]
        own = distinct[list(right[text])]
        least = float(pair_scores(np.broadcast_to(queries[row], own.shape), own, score).min())
        most = least - _distance(least, margin, relative_margin)
        kept = candidates[scores[candidates] <= most]
        num_candidates += len(candidates)
        num_dropped += len(candidates) - len(kept)
        chosen = kept[first_rank - 1 :][:count]
        if len(chosen) == count:
            found.append(row)
            negatives.append(searched[numbers[chosen]])
    return MinedNegatives(
        np.array(found, np.int64),
        np.array(negatives, np.int64).reshape(-1, count),
        len(queries) - len(found),
        num_dropped / max(num_candidates, 1),
    )


def _distance(positive: float, margin: float | None, relative_margin: float | None) -> float:
    """How far below its positive's score that of a negative must be."""
    asked = [] if margin is None else [margin]
    if relative_margin is not None:
        asked.append(abs(positive) * relative_margin)
    return max(asked, default=-np.inf)
