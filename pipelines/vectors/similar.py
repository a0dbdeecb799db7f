"""The texts whose vectors point the same way as that of a text that is searched for."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sentence_modules import DOCUMENT, QUERY
from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import check_file, file_sha256, is_there
from keras_bert_impl.json_files import read_typed
from keras_bert_impl.serving.smaller_vectors import TYPES, UBINARY, check_size, restored, unit
from pipelines.vectors.embed import INPUT_SHA256, model_of_vectors, open_embedder, origin_of
from pipelines.vectors.options import SimilarConfig
from pipelines.vectors.texts import Texts, open_texts

if TYPE_CHECKING:
    from keras_bert_impl.serving.embedder import Embedder

_LOGGER = logging.getLogger(__name__)

_BLOCK_BYTES = 64 << 20
_MOST_OF_HEADER = 10_000  # characters, of which NumPy makes a Python literal


class _Origin(TypedDict, total=False):
    """What of the file beside vectors is read here."""

    input_sha256: str
    prompt: str
    dimensions: int | None
    ranges: list[list[float]]


class Similar(NamedTuple):
    """A text that was found.

    Attributes:
        query: the text that was searched for.
        number: the text's number, from 1: its line in a file of lines.
        cosine: of the two vectors.
        text: the text.
    """

    query: str
    number: int
    cosine: float
    text: str


def find_similar(config: SimilarConfig) -> list[Similar]:
    """The nearest texts of every query, by the cosine of their vectors, the nearest first.

    The vectors are read in blocks of 64 MB, and the texts once; nothing of either is kept.
    """
    vectors, kept = _open_vectors(config.vectors_file), origin_of(config.vectors_file)
    origin = read_typed(kept, _Origin, "make it with embed") if kept.is_file() else None
    encoding = config.text_encoding
    asked = open_texts(config.query_file, encoding=encoding) if config.query_file else ()
    queries = [*config.query, *asked]
    texts = open_texts(config.input_file, config.text_column, encoding)
    next(iter(texts), None)  # a missing file is reported before the model is opened
    hidden = find_model(config.model, do_lower_case=config.do_lower_case).config.hidden_size
    dimensions = config.dimensions or (origin or {}).get("dimensions")
    width = check_size(dimensions, hidden)
    if vectors.shape[1] != (-(-width // 8) if vectors.dtype == TYPES[UBINARY] else width):
        raise UserError(
            f"{config.vectors_file}: its vectors have {vectors.shape[1]} numbers, but those of "
            f"{config.model} have {width}; name the model that made them, or their `dimensions`."
        )
    ranges = np.array((origin or {}).get("ranges", ()), np.float32)
    if vectors.dtype == np.int8 and ranges.shape != (2, width):
        raise UserError(f"{kept}: says no ranges of the int8 vectors; make them with embed.")
    embedder = open_embedder(config, texts)
    prompt = _check_origin(config, embedder, origin) if origin is not None else None
    asked_vectors = embedder.embed(queries, prompt, dimensions)
    numbers, cosines = nearest(vectors, asked_vectors, config.top_k, ranges)
    if not np.isfinite(cosines).all():
        raise UserError(f"{config.vectors_file}: has vectors that are NaN; make it with embed.")
    picked = _pick(texts, set(numbers.ravel().tolist()), len(vectors), config)
    return [
        Similar(query, number + 1, cosine, picked[number])
        for query, some, alike in zip(queries, numbers.tolist(), cosines.tolist(), strict=True)
        for number, cosine in zip(some, alike, strict=True)
    ]


def nearest(
    vectors: NDArray[Any],
    queries: NDArray[np.float32],
    count: int,
    ranges: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The vectors with the highest cosine to each query.

    Args:
        vectors: [vectors, width] of any type of `smaller_vectors`; may be mapped from a file.
        queries: [queries, width].
        ranges: of int8.

    Returns:
        Their numbers, int64 [queries, count], and cosines, float32 [queries, count], the highest
        first; of equal ones the earlier first. Fewer where there are fewer vectors.

    Example:
        >>> vectors = np.array([[1, 0], [0, 2], [3, 3]], np.float32)
        >>> numbers, cosines = nearest(vectors, np.array([[0, 1]], np.float32), 2)
        >>> numbers.tolist(), (100 * cosines).round().tolist()
        ([[1, 2]], [[100.0, 71.0]])
    """
    wanted = unit(queries)
    numbers = np.empty((len(queries), 0), np.int64)
    cosines = np.empty((len(queries), 0), np.float32)
    width = queries.shape[1]
    block = max(1, _BLOCK_BYTES // (4 * width))
    for start in range(0, len(vectors), block):
        some = restored(vectors[start : start + block], width, ranges)
        alike = wanted @ unit(some).T  # [queries, block]
        these = np.broadcast_to(np.arange(start, start + alike.shape[1]), alike.shape)
        numbers = np.concatenate([numbers, these], axis=1)
        cosines = np.concatenate([cosines, alike], axis=1)
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        numbers = np.take_along_axis(numbers, best, axis=1)
        cosines = np.take_along_axis(cosines, best, axis=1)
    return numbers, cosines


def _open_vectors(path: Path) -> NDArray[Any]:
    if not is_there(path):
        raise UserError(f"{path}: no such file; make it with embed.")
    check_file(path)
    with reading(path, "a file of vectors", "make it with embed"):
        vectors = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=_MOST_OF_HEADER)
    if (
        not isinstance(vectors, np.ndarray)
        or vectors.ndim != 2
        or vectors.dtype not in TYPES.values()
    ):
        raise UserError(f"{path}: holds no vectors of {', '.join(TYPES)}; make it with embed.")
    if 0 in vectors.shape:
        raise UserError(f"{path}: holds no vectors; make it with embed.")
    return vectors


def _check_origin(
    config: SimilarConfig, embedder: "Embedder", origin: Mapping[str, Any]
) -> str | None:
    """Looks at what `embed` kept of the vectors; where nothing is kept, they are believed.

    Returns:
        The name of the queries' prompt: that of queries where the vectors are of documents, the
        default one where they were made with it, or with what the options say.
    """
    kept = origin_of(config.vectors_file)
    made_with, settings = origin.get("prompt"), embedder.settings
    of_documents = made_with == settings.prompt_of(DOCUMENT)
    is_given = config.prompt is not None or config.prompt_name is not None
    model = {**model_of_vectors(embedder), "prompt": made_with}
    fits = is_given or of_documents or made_with == settings.prompt
    if not fits or any(origin.get(name) != value for name, value in model.items()):
        raise UserError(
            f"{config.vectors_file}: {kept.name} says that its vectors were made with another "
            f"model than {config.model}, or with another pooling or prompt; name what made them, "
            "or make them again with embed."
        )
    if origin.get(INPUT_SHA256) != file_sha256(Path(config.input_file)):
        _LOGGER.warning(
            "%s: %s says that its vectors were made of another file than %s, or before it was "
            "changed: texts that are found may be the wrong ones; embed makes them again.",
            *(config.vectors_file, kept.name, config.input_file),
        )
    return QUERY if of_documents and not is_given else None


def _pick(texts: Texts, numbers: set[int], expected: int, config: SimilarConfig) -> dict[int, str]:
    """The texts of some numbers; all are counted."""
    found, count = dict[int, str](), 0
    for count, text in enumerate(texts, start=1):
        if count - 1 in numbers:
            found[count - 1] = text
    if count != expected:
        raise UserError(
            f"{config.vectors_file}: has {expected} vectors, but {config.input_file} has {count} "
            "texts; name the file that they were made of."
        )
    return found


def lines_of(found: Sequence[Similar]) -> Iterator[str]:
    """The texts found as lines: each query, then its texts with cosine and number.

    Example:
        >>> list(lines_of([Similar("dog", 7, 0.5, "a cat")]))
        ['dog', '  0.500  7  a cat']
    """
    query: str | None = None
    for one in found:
        if one.query != query:
            query = one.query
            yield query
        yield f"  {one.cosine:.3f}  {one.number}  {one.text}"
