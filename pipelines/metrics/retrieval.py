"""Figures of vectors: what a search finds, how alike pairs are, which class is near; and BM25's.

A figure depends on nothing but the vectors. The score of two is their product in float64, summed
in one order, by both lengths for a cosine, and rounded to float32. Products of matrices have other
last digits for other shapes: they only say which pairs may be among the best. So equal vectors
have equal scores, wherever they stand, and of equal scores the lower number comes first.
"""

import logging
import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.backend import need_extra
from pipelines.metrics.classification import Values, pearson_correlation, spearman_correlation

Score = str

CHUNK = 8192  # vectors in memory as float64, and columns of a block of scores
_QUERIES = 1024  # rows of such a block
_COUNTED_AT = (1, 3, 5, 10)
_DEEPEST = 100


def retrieval_figures(
    queries: NDArray,
    documents: NDArray,
    relevant: Sequence[Collection[int]],
    score: Score = "cosine",
    chunk: int = CHUNK,
) -> dict[str, float]:
    """The figures of `InformationRetrievalEvaluator` (sentence-transformers 6.2) by its defaults.

    Args:
        queries: [queries, width].
        documents: [documents, width]; may be mapped from a file. Of equal scores that evaluator
            takes the document with the lower id: number documents in the order of their ids.
        relevant: the numbers of each query's right documents; a query without one is left out.
        score: what vectors are compared by.
        chunk: how many documents are compared at once; no figure depends on it.

    Example:
        >>> documents = np.array([[1, 0], [0, 1], [1, 1]])
        >>> figures = retrieval_figures(np.array([[2, 1]]), documents, [{0}])
        >>> figures["accuracy@1"], figures["accuracy@3"], figures["mrr@10"]
        (0.0, 1.0, 0.5)
    """
    if len(relevant) != len(queries):
        raise ValueError(f"{len(queries)} queries, but relevant documents of {len(relevant)}")
    asked = [number for number, right in enumerate(relevant) if right]
    numbers, _ = best_documents(np.asarray(queries)[asked], documents, _DEEPEST, score, chunk)
    answers = [set(relevant[number]) for number in asked]
    rankings = [
        [number in right for number in some]
        for some, right in zip(numbers.tolist(), answers, strict=True)
    ]
    return ranking_figures(rankings, [len(right) for right in answers])


def ranking_figures(
    rankings: Sequence[Sequence[bool]], num_relevant: Sequence[int]
) -> dict[str, float]:
    """The same figures of given rankings.

    Args:
        rankings: of each query whether its first, second, … document is right; of any length.
        num_relevant: how many right documents each query has, found or not; at least one.
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


def best_documents(
    queries: NDArray,
    documents: NDArray,
    count: int,
    score: Score = "cosine",
    chunk: int = CHUNK,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The documents with the highest scores of each query, exactly, in bounded memory.

    Returns:
        Their numbers and scores [queries, count], the best first, of equal ones the lower number;
        fewer where there are fewer documents.

    Example:
        >>> documents = np.array([[1, 0], [0, 2], [3, 3]])
        >>> numbers, scores = best_documents(np.array([[0, 1]]), documents, 2)
        >>> numbers.tolist(), (100 * scores).round().tolist()
        ([[1, 2]], [[100.0, 71.0]])
    """
    count = min(count, len(documents))
    blocks = [
        _best_of_some(
            _rows(queries[start : start + _QUERIES], score), documents, count, score, chunk
        )
        for start in range(0, max(len(queries), 1), _QUERIES)
    ]
    numbers, scores = zip(*blocks, strict=True)
    return np.concatenate(numbers), np.concatenate(scores)


class _Rows(NamedTuple):
    """Vectors as float64 [rows, width], and what their products are divided by, [rows]."""

    values: NDArray[np.float64]
    divisors: NDArray[np.float64]

    def take(self, rows: NDArray | slice) -> "_Rows":
        return _Rows(self.values[rows], self.divisors[rows])

    def rough(self) -> NDArray[np.float32]:
        return (self.values / self.divisors[:, None]).astype(np.float32)


def _rows(vectors: NDArray, score: Score) -> _Rows:
    if score not in ("cosine", "dot"):
        raise ValueError(f"score {score!r} is neither 'cosine' nor 'dot'")
    values = np.ascontiguousarray(vectors, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("vectors have numbers that are NaN or infinite")
    if score == "dot":
        return _Rows(values, np.ones(len(values)))
    return _Rows(values, np.maximum(np.sqrt(_dots(values, values)), 1e-12))


def _dots(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row: `einsum` sums each row for itself, whatever the others."""
    return np.einsum("rw,rw->r", left, right)


def _scores(left: _Rows, right: _Rows) -> NDArray[np.float32]:
    products = _dots(left.values, right.values)
    return (products / (left.divisors * right.divisors)).astype(np.float32)


def _best_of_some(
    queries: _Rows, documents: NDArray, count: int, score: Score, chunk: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """`best_documents` of as many queries as a block has."""
    num_queries = len(queries.values)
    rows = np.empty(0, np.int64)
    numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for start in range(0, len(documents), chunk):
        block = _rows(documents[start : start + chunk], score)
        left, right = queries.rough(), block.rough()
        rough = left @ right.T
        # A product of float32 is off by at most about width · 2^-24 times both lengths; this is
        # four times that, because two products are compared.
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1).max()
        slack = 2 * (right.shape[1] + 8) * np.finfo(np.float32).eps * lengths
        least = np.full(num_queries, -np.inf, np.float32)
        if count < len(right):
            least = np.partition(rough, -count, axis=1)[:, -count] - slack
        if len(scores) == num_queries * count:  # so many are known already
            least = np.maximum(least, scores.reshape(num_queries, count)[:, -1] - slack)
        some_rows, columns = np.nonzero(rough >= least[:, None])
        parts = [slice(i, i + CHUNK) for i in range(0, len(columns), CHUNK)]
        found = [_scores(queries.take(some_rows[i]), block.take(columns[i])) for i in parts]
        rows = np.concatenate([rows, some_rows])
        numbers = np.concatenate([numbers, start + columns])
        scores = np.concatenate([scores, *found])
        order = np.lexsort((numbers, -scores, rows))
        in_order = rows[order]
        place = np.arange(len(order)) - np.searchsorted(in_order, in_order)
        best = order[place < count]
        rows, numbers, scores = rows[best], numbers[best], scores[best]
    return numbers.reshape(num_queries, count), scores.reshape(num_queries, count)


def pair_scores(
    left: NDArray, right: NDArray, score: Score = "cosine", chunk: int = CHUNK
) -> NDArray[np.float32]:
    """The score of each row of one with the same row of the other."""
    parts = [slice(start, start + chunk) for start in range(0, len(left), chunk)]
    found = [_scores(_rows(left[part], score), _rows(right[part], score)) for part in parts]
    return np.concatenate([np.empty(0, np.float32), *found])


def nearest_accuracy(vectors: NDArray, classes: Sequence, chunk: int = CHUNK) -> float:
    """The share of vectors whose nearest other one, by cosine, is of their class."""
    if not 1 < len(vectors) == len(classes):
        raise ValueError(f"{len(vectors)} vectors of {len(classes)} classes: both need two or more")
    numbers, _ = best_documents(vectors, vectors, 2, "cosine", chunk)
    itself = numbers[:, 0] == np.arange(len(vectors))
    names = np.asarray(classes)
    return float((names[np.where(itself, numbers[:, 1], numbers[:, 0])] == names).mean())


def triplet_accuracy(
    anchors: NDArray, positives: NDArray, negatives: NDArray, score: Score = "cosine"
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
