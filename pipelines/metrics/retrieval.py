"""Figures of vectors: what a search finds, how alike pairs are, which class is near; and BM25's.

A figure depends on nothing but the vectors: see `pair_scores` and `nearest`. Of equal scores the
lower number comes first.
"""

import logging
import math
import re
import unicodedata
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.backend import need_extra
from pipelines.metrics.classification import Values, pearson_correlation, spearman_correlation
from pipelines.vectors.nearest import nearest, pair_scores
from pipelines.vectors.options import COSINE

_COUNTED_AT = (1, 3, 5, 10)
_DEEPEST = 100


def retrieval_figures(
    queries: NDArray, documents: NDArray, relevant: Sequence[Collection[int]], score: str = COSINE
) -> dict[str, float]:
    """The figures of `InformationRetrievalEvaluator` (sentence-transformers 6.2) by its defaults.

    Of equal scores that evaluator takes the document with the lower id: number documents in the
    order of their ids. Queries and documents are [n, width]; a query without a right document is
    left out.
    """
    if len(relevant) != len(queries):
        raise ValueError(f"{len(queries)} queries, but relevant documents of {len(relevant)}")
    asked = [number for number, right in enumerate(relevant) if right]
    numbers, _ = nearest(documents, np.asarray(queries)[asked], _DEEPEST, score=score)
    answers = [set(relevant[number]) for number in asked]
    rankings = [
        [number in right for number in some]
        for some, right in zip(numbers.tolist(), answers, strict=True)
    ]
    return ranking_figures(rankings, [len(right) for right in answers])


def ranking_figures(
    rankings: Sequence[Sequence[bool]], num_relevant: Sequence[int]
) -> dict[str, float]:
    """The same figures of given rankings, of any length: whether each document in it is right.

    Each query has `num_relevant` right documents, found or not; at least one.
    """
    if not len(rankings) or min(num_relevant) < 1:
        raise ValueError("figures need queries, and each query a right document")
    hits = np.zeros((len(rankings), _DEEPEST))
    for row, ranking in zip(hits, rankings, strict=True):
        row[: len(ranking)] = ranking[:_DEEPEST]
    right, ranks = np.array(num_relevant), np.arange(1, _DEEPEST + 1)
    found = hits.cumsum(axis=1)
    each: dict[str, NDArray] = {}
    for k in _COUNTED_AT:
        each[f"accuracy@{k}"] = found[:, k - 1] > 0
        each[f"precision@{k}"] = found[:, k - 1] / k
        each[f"recall@{k}"] = found[:, k - 1] / right
    gains = 1 / np.log2(ranks[:10] + 1)
    each["mrr@10"] = (hits / ranks)[:, :10].max(axis=1)  # the first hit's is the greatest
    each["ndcg@10"] = hits[:, :10] @ gains / gains.cumsum()[np.minimum(right, 10) - 1]
    each["map@100"] = (hits * found / ranks).sum(axis=1) / np.minimum(right, _DEEPEST)
    return {name: float(values.mean()) for name, values in each.items()}


def nearest_accuracy(vectors: NDArray, classes: Sequence) -> float:
    """The share of vectors whose nearest other one, by cosine, is of their class."""
    return float(nearest_hits(vectors, classes).mean())


def nearest_hits(vectors: NDArray, classes: Sequence) -> NDArray[np.bool_]:
    """Of which vectors the nearest other one, by cosine, is of their class."""
    if not 1 < len(vectors) == len(classes):
        raise ValueError(f"{len(vectors)} vectors of {len(classes)} classes: both need two or more")
    numbers, _ = nearest(vectors, vectors, 2)
    itself = numbers[:, 0] == np.arange(len(vectors))
    names = np.asarray(classes)
    return names[np.where(itself, numbers[:, 1], numbers[:, 0])] == names


def triplet_accuracy(
    anchors: NDArray, positives: NDArray, negatives: NDArray, score: str = COSINE
) -> float:
    """The share of triplets whose positive has a higher score than its negative."""
    near, far = (pair_scores(anchors, others, score) for others in (positives, negatives))
    return float((near > far).mean())


def similarity_figures(scores: Values, labels: Values) -> dict[str, float]:
    """Spearman's correlation of scores and labels, its 95 % interval, and Pearson's.

    The interval is Fisher's, with the variance (1 + r² / 2) / (n − 3) of Bonett and Wright (2000),
    "Sample size requirements for estimating Pearson, Kendall and Spearman correlations",
    Psychometrika 65, 23–28. It is NaN of fewer than four pairs.
    """
    spearman = spearman_correlation(scores, labels)
    low = high = math.nan
    if len(scores) > 3:
        half = 1.959964 * math.sqrt((1 + spearman**2 / 2) / (len(scores) - 3))
        with np.errstate(divide="ignore"):  # of 1 and −1, which are their own intervals
            low, high = (float(np.tanh(np.arctanh(spearman) + way * half)) for way in (-1, 1))
    return {
        "spearman": spearman,
        "spearman_low": low,
        "spearman_high": high,
        "pearson": pearson_correlation(scores, labels),
    }


def need_bm25() -> None:
    """Refuses to begin where the package of the extra `search` is not installed."""
    need_extra("search", ["bm25s"], "BM25")


def bm25_rankings(queries: Sequence[str], documents: Sequence[str], top_k: int) -> list[list[int]]:
    """The numbers of each query's best documents by BM25 (Lucene's, k1 1.2, b 0.75).

    The best come first, of equal ones the lower number; a document that shares no word with the
    query is not among them.
    """
    need_bm25()
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    words = [search_words(document) for document in documents]
    if not any(words):
        return [[] for _ in queries]
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(words, show_progress=False)
    rankings = []
    for query in queries:
        scores = index.get_scores_from_ids(index.get_tokens_ids(search_words(query)))
        numbers = np.flatnonzero(scores > 0)
        best = np.argsort(-scores[numbers], kind="stable")[:top_k]
        rankings.append(numbers[best].tolist())
    return rankings


class _KeptCharacters(dict[int, str]):
    """For `str.translate`: letters, marks and digits stay, joiners go, all others are spaces."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        self[code] = chr(code) if category[0] in "LMN" else "" if category == "Cf" else " "
        return self[code]


_KEPT = _KeptCharacters()
# Scripts that put no spaces between words, or, as Korean does, endings on them and spaces at will:
# Thai, Lao, Tibetan, Myanmar, Hangul's letters, Khmer, kana and ideographs, Hangul, ideographs.
_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u9fff\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_SPACE_BETWEEN = re.compile(f"(?<=[{_UNSPACED}]) +(?=[{_UNSPACED}])")
_RUNS = re.compile(f"([{_UNSPACED}]+)|[^ {_UNSPACED}]+")


def search_words(text: str) -> list[str]:
    """What BM25 counts of a text in any language: its words, in lower case.

    Of a script in which spaces do not show the words it is each two neighbouring characters.

    Example:
        >>> search_words("Where's Seoul's 남대문 시장?")
        ['where', 's', 'seoul', 's', '남대', '대문', '문시', '시장']
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_KEPT)
    words = list[str]()
    for run in _RUNS.finditer(_SPACE_BETWEEN.sub("", plain)):
        if run[1] is None:
            words.append(run[0])
        else:
            words += [run[0][i : i + 2] for i in range(max(1, len(run[0]) - 1))]
    return words
