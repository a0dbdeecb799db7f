"""Hard negatives: documents near a query that are not its answers, for training to tell apart."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.vectors.nearest import nearest, pair_scores
from pipelines.vectors.options import COSINE

_AT_ONCE = 1024  # queries, of which the nearest are held


class MinedNegatives(NamedTuple):
    """The queries that have enough negatives, and their negatives, the nearest first."""

    queries: NDArray[np.int64]  # [found], ascending
    negatives: NDArray[np.int64]  # [found, count]
    share_dropped: float  # of the candidates, by a margin, as probably positive


def mine_negatives(
    queries: NDArray,
    documents: NDArray,
    positives: Sequence[Collection[int]],
    texts: tuple[Sequence[str], Sequence[str]],
    *,
    count: int,
    first_rank: int = 1,
    last_rank: int = 100,
    margin: float = -math.inf,
    relative_margin: float | None = None,
    score: str = COSINE,
) -> MinedNegatives:
    """The nearest documents of each query that are not its positives, by an exact search.

    A query's candidates are its `last_rank` nearest documents, positives not counted. Margins drop
    some; of what is left, the `count` negatives are those from `first_rank` on, as in
    `mine_hard_negatives` of sentence-transformers 6.2. A query with fewer is left out.

    A negative's score is at most that of the query's farthest positive less the `margin`, and less
    the `relative_margin`, a share of that score's size; 0.05 is what NV-Retriever found best
    (Moreira et al. 2024, arXiv:2407.15831, "TopK-PercPos").

    By the `texts` of queries and documents, equal queries share their positives, equal documents
    are one, the first, and what says the same as a query is no negative of it.
    """
    if not 1 <= first_rank <= last_rank - count + 1 <= last_rank:
        raise ValueError(f"the ranks {first_rank} to {last_rank} do not hold {count} negatives")
    if not all(positives):
        raise ValueError("each query needs a positive, or its negatives might be right answers")
    query_texts, document_texts = texts
    first = dict[str, int]()
    for number, text in enumerate(document_texts):
        first.setdefault(text, number)
    searched = np.array(list(first.values()))
    place = {text: number for number, text in enumerate(first)}
    right = defaultdict[str, set[int]](set)
    for text, known in zip(query_texts, positives, strict=True):
        right[text].update(place[document_texts[number]] for number in known)
    never = {text: {*known, place.get(text, -1)} for text, known in right.items()}

    distinct = documents[searched]
    depths = [last_rank + _power_of_two(len(never[text])) for text in query_texts]
    found, num_candidates, num_dropped = dict[int, NDArray](), 0, 0
    for row, numbers, scores in _searched(distinct, queries, np.array(depths), score):
        text = query_texts[row]
        candidates = np.flatnonzero(~np.isin(numbers, list(never[text])))[:last_rank]
        own = distinct[list(right[text])]
        least = float(pair_scores(np.broadcast_to(queries[row], own.shape), own, score).min())
        relative = margin if relative_margin is None else abs(least) * relative_margin
        most = least - max(margin, relative)
        kept = candidates[scores[candidates] <= most]
        num_candidates += len(candidates)
        num_dropped += len(candidates) - len(kept)
        chosen = kept[first_rank - 1 :][:count]
        if len(chosen) == count:
            found[row] = searched[numbers[chosen]]
    rows = sorted(found)
    return MinedNegatives(
        np.array(rows, np.int64),
        np.array([found[row] for row in rows], np.int64).reshape(-1, count),
        num_dropped / max(num_candidates, 1),
    )


def _searched(
    documents: NDArray, queries: NDArray, depths: NDArray, score: str
) -> Iterator[tuple[int, NDArray, NDArray]]:
    """The row of each query, those of one depth together, with its nearest as deep as it says."""
    for depth in np.unique(depths).tolist():
        group = np.flatnonzero(depths == depth)
        for start in range(0, len(group), _AT_ONCE):
            rows = group[start : start + _AT_ONCE]
            near = nearest(documents, queries[rows], depth, score=score)
            yield from zip(rows.tolist(), *near, strict=True)


def _power_of_two(least: int) -> int:
    """So that there are few depths, and none is twice what it must be."""
    return 1 << (least - 1).bit_length()
