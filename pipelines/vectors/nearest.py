"""The nearest of some vectors: all of them looked at, or by a graph (HNSW, computed by faiss).

The graph's file holds the links alone. The vectors stay where they are, mapped, so that they are
on the disk and in memory once.
"""

import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import is_named, open_whole, without_links
from keras_bert_impl.serving.smaller_vectors import Vectors, restored
from pipelines.vectors.options import COSINE, METRICS

LEAST_EF = 64
"""How many candidates a search keeps, where nothing was measured."""

_LINKS, _EF_OF_BUILDING = 32, 100
_ROWS_AT_ONCE = 8192
_SECONDS_BETWEEN = 60.0  # of building, which a kill may cost
_END = np.dtype([("rows", "<u8"), ("digest", "<u4")])  # stands behind the links in their file
_MARKED = 64  # vectors

_BLOCK_BYTES = 64 << 20
_QUERIES_AT_ONCE = 1024
_PAIRS_AT_ONCE = 1024  # as float64, which a processor's cache holds
_MANY = 4  # times what is wanted: a block's best are looked for then
_TINY = 1e-12

Numbers = NDArray[np.int64]


class NotComparableError(ValueError):
    """Vectors have numbers that are NaN, infinite or too large."""


def pair_scores(left: NDArray, right: NDArray, score: str = COSINE) -> Vectors:
    """The cosine, or product, of each row of one with the same row of the other: float32 [rows].

    It is computed in float64, summed in one order and rounded. So it depends on nothing but the two
    vectors, and equal ones have equal scores.
    """
    if score not in METRICS:
        raise ValueError(f"score {score!r} is neither 'cosine' nor 'dot'")
    found = [np.empty(0, np.float32)]
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        a, b = (np.ascontiguousarray(one[part], np.float64) for one in (left, right))
        products = _dots(a, b)
        if score == COSINE:
            products /= _lengths(a) * _lengths(b)
        found.append(_finite(products).astype(np.float32))
    return np.concatenate(found)


def _dots(left: NDArray, right: NDArray) -> NDArray:
    """Row by row, in float64: `einsum` sums each row for itself, whatever the others."""
    return np.einsum("ij,ij->i", left, right, dtype=np.float64)


def _lengths(vectors: NDArray) -> NDArray:
    return np.maximum(np.sqrt(_dots(vectors, vectors)), _TINY)


def _finite(scores: NDArray) -> NDArray:
    if not np.isfinite(scores).all():
        raise NotComparableError(
            "vectors have numbers that are NaN, infinite or too large to be multiplied"
        )
    return scores


def nearest(
    vectors: NDArray[Any],
    queries: NDArray,
    count: int,
    ranges: Vectors | None = None,
    *,
    score: str = COSINE,
    longest: float | None = None,
) -> tuple[Numbers, Vectors]:
    """The vectors with the highest cosine to each query, or product with it: exactly, in blocks.

    Products of matrices have other last digits for other shapes: they only say which vectors may be
    among the best. So the answer depends on no size of a block.

    Vectors are [vectors, width] of any type of `smaller_vectors`, int8 with its ranges, and may be
    mapped from a file; queries [queries, width]. Where the length of the `longest` vector is known
    products are faster. Gives their numbers, int64 [queries, count], and `pair_scores`, float32
    [queries, count], the highest first; of equal ones the earlier first.
    """
    count, size = max(0, min(count, len(vectors))), _QUERIES_AT_ONCE
    numbers = np.empty((len(queries), count), np.int64)
    scores = np.empty((len(queries), count), np.float32)
    for start in range(0, len(queries) if count else 0, size):
        some = slice(start, start + size)
        found = _nearest(vectors, queries[some], count, ranges, score, longest)
        numbers[some], scores[some] = (one.reshape(-1, count) for one in found)
    return numbers, scores


def _nearest(
    vectors: NDArray[Any],
    queries: NDArray,
    count: int,
    ranges: Vectors | None,
    score: str,
    longest: float | None,
) -> tuple[Numbers, Vectors]:
    """Flat: the best of the first query, then of the second."""
    width, asked = queries.shape[1], np.asarray(queries, np.float32)
    if score == COSINE:
        asked = (asked / _lengths(asked)[:, None]).astype(np.float32)
    # A product of float32 is off by at most about width · 2^-24 times both lengths; this is four
    # times that, because two products are compared.
    slack = 2 * (width + 8) * np.finfo(np.float32).eps * _lengths(asked)
    rows, numbers = np.empty(0, np.int64), np.empty(0, np.int64)
    scores, least = np.empty(0, np.float32), np.full(len(asked), -np.inf, np.float32)
    # What a block takes: its scores, and its vectors where they are made.
    made = 0 if vectors.dtype == np.float32 else width
    block = max(1, _BLOCK_BYTES // (4 * max(made, len(asked))))
    for start in range(0, len(vectors), block):
        whole = restored(vectors[start : start + block], width, ranges)
        some = np.asarray(whole, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # `_finite` refuses what comes of it
            rough, most = asked @ some.T, 1.0 if longest is None else longest
        if score == COSINE:
            rough /= _lengths(some)
        elif longest is None:
            most = _lengths(some).max()
        is_near = _finite(rough) >= (least - most * slack)[:, None]
        if count < len(some) and np.count_nonzero(is_near) > _MANY * len(asked) * count:
            of_block = np.partition(rough, -count, axis=1)[:, -count]
            is_near = rough >= (np.maximum(least, of_block) - most * slack)[:, None]
            if np.count_nonzero(is_near) > _MANY * len(asked) * count:
                is_near[:, _beaten(whole, is_near.any(axis=0), rough.sum(axis=0), count)] = False
        query, near = np.nonzero(is_near)
        parts = (slice(i, i + _PAIRS_AT_ONCE) for i in range(0, len(near), _PAIRS_AT_ONCE))
        exact = [pair_scores(queries[query[i]], whole[near[i]], score) for i in parts]
        rows, numbers = np.concatenate([rows, query]), np.concatenate([numbers, start + near])
        scores = np.concatenate([scores, *exact])
        order = np.lexsort((numbers, -scores, rows))
        place = np.arange(len(order)) - np.searchsorted(rows[order], rows[order])
        best = order[place < count]
        rows, numbers, scores = rows[best], numbers[best], scores[best]
        if len(scores) == len(asked) * count:
            least = scores.reshape(-1, count)[:, -1]
    return numbers, scores


def _beaten(
    vectors: NDArray[Any], is_near: NDArray[np.bool_], rough: Vectors, count: int
) -> Numbers:
    """Near vectors that `count` equal ones precede, which have their score and win.

    Equal ones that are computed alike have one rough sum of scores and follow one another in its
    order. Where products differ in a last digit, fewer are found.
    """
    near = np.flatnonzero(is_near)
    near = near[np.argsort(rough[near], kind="stable")]
    is_new = np.append(True, rough[near[1:]] != rough[near[:-1]])
    same = np.flatnonzero(~is_new)
    for start in range(0, len(same), _PAIRS_AT_ONCE):
        some = same[start : start + _PAIRS_AT_ONCE]
        is_new[some] = (vectors[near[some]] != vectors[near[some - 1]]).any(axis=1)
    place = np.arange(len(near))
    return near[place - np.maximum.accumulate(np.where(is_new, place, 0)) >= count]


class Graph:
    """Links between the first `rows` of some vectors; safe to be searched by several threads."""

    def __init__(self, links: Any, vectors: Vectors) -> None:
        faiss = _faiss()
        self._links, self._vectors, self.rows = links, vectors, int(links.ntotal)
        flat = faiss.IndexFlat(vectors.shape[1], faiss.METRIC_INNER_PRODUCT)
        # A view of the mapped file, which nobody owns in C++: it is kept here.
        flat.codes = faiss.MaybeOwnedVectorUInt8.create_view(
            faiss.swig_ptr(vectors), vectors.nbytes, faiss.MaybeOwnedVectorUInt8().owner
        )
        flat.ntotal = self.rows
        links.storage = self._flat = flat

    def search(self, queries: Vectors, count: int, ef: int) -> tuple[Numbers, Vectors]:
        """The vectors of the largest products with each query that a search of width `ef` meets.

        Gives their numbers, int64 [queries, count], and products, the largest first; where fewer
        are met, -1 and minus infinity.
        """
        settings = _faiss().SearchParametersHNSW(efSearch=max(ef, count))
        products, numbers = self._links.search(queries, count, params=settings)
        return numbers, np.where(numbers < 0, -np.inf, products)


_AGAIN = "remove it, and it is made again where texts are added"


def read_links(path: Path, vectors: Vectors, *, mapped: bool = True) -> Any:
    """The links of a graph of these vectors: faiss' index without them; None where it is missing.

    faiss trusts its file, so that it is looked at before.
    """
    if not is_named(without_links(path)):
        return None
    faiss = _faiss()
    with reading(path, "a graph", _AGAIN):
        looked_at, is_graph = path.stat(), False
        whole = np.memmap(path, np.uint8, "r")
        content, ((rows, digest),) = whole[: -_END.itemsize], whole[-_END.itemsize :].view(_END)
        if rows <= len(vectors) and _digest(content, vectors[:rows]) == digest:
            links = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
            its = (links.metric_type, links.d, links.ntotal)
            is_graph = isinstance(links, faiss.IndexHNSWFlat)
            is_graph &= its == (faiss.METRIC_INNER_PRODUCT, vectors.shape[1], rows)
        if not os.path.samestat(looked_at, path.stat()):  # another process has saved it meanwhile
            return read_links(path, vectors, mapped=mapped)
        if is_graph:
            return links
    raise UserError(f"{path}: is damaged, or the graph of other vectors; {_AGAIN}.")


def grow_graph(path: Path, vectors: Vectors, advance: Callable[[int], object]) -> None:
    """Links all vectors, those that are not linked yet; goes on where it was stopped.

    Memory is that of the vectors, of the links (280 bytes a vector), and of these once more while
    they are written, which is done once a minute.
    """
    faiss = _faiss()
    links = read_links(path, vectors, mapped=False)
    if links is None:
        links = faiss.IndexHNSWFlat(vectors.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    flat = faiss.IndexFlat(vectors.shape[1], faiss.METRIC_INNER_PRODUCT)
    flat.add(vectors[: links.ntotal])
    links.storage = flat
    links.hnsw.efConstruction = _EF_OF_BUILDING
    written = time.monotonic()
    while links.ntotal < len(vectors):
        some = np.ascontiguousarray(vectors[links.ntotal : links.ntotal + _ROWS_AT_ONCE])
        links.add(some)
        advance(len(some))
        if links.ntotal == len(vectors) or time.monotonic() - written > _SECONDS_BETWEEN:
            content = faiss.serialize_index(links, faiss.IO_FLAG_SKIP_STORAGE)
            with open_whole(path, "wb") as file:
                file.write(content.data)
                digest = _digest(content, vectors[: links.ntotal])
                file.write(np.array((links.ntotal, digest), _END).tobytes())
            written = time.monotonic()


def _digest(content: NDArray[np.uint8], vectors: Vectors) -> int:
    """The digest of a graph and of some of the vectors that it links: all would take seconds."""
    some = np.linspace(0, max(0, len(vectors) - 1), _MARKED if len(vectors) else 0).astype(np.int64)
    mark = zlib.crc32(np.ascontiguousarray(vectors[some]).data)
    return zlib.crc32(content.data, mark)


def _faiss() -> Any:
    need_extra("search", ["faiss"], "a graph of vectors")
    import faiss

    return faiss
