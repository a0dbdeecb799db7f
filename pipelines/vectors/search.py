"""The nearest texts: among the vectors that `embed` made of a file, and in a kept index."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.sentence_modules import DOCUMENT, QUERY
from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import check_file, file_sha256, is_there
from keras_bert_impl.json_files import json_text, read_typed
from keras_bert_impl.options import options_named
from keras_bert_impl.progress import Progress
from keras_bert_impl.serving.smaller_vectors import TYPES, UBINARY, check_size
from pipelines.tables.writing import one_line
from pipelines.vectors.embed import known_model, model_of_vectors, open_embedder, origin_of
from pipelines.vectors.index import DESCRIPTION, WANTED_RECALL, Found, VectorIndex
from pipelines.vectors.nearest import NotComparableError, nearest
from pipelines.vectors.options import EXACT, HNSW, QueriesConfig, SearchConfig, SimilarConfig
from pipelines.vectors.texts import Texts, open_texts

if TYPE_CHECKING:
    from keras_bert_impl.serving.embedder import Embedder

_LOGGER = logging.getLogger(__name__)

_MANY = 100_000  # texts, which are searched exactly in some milliseconds
_MOST_OF_HEADER = 10_000  # characters, of which NumPy makes a Python literal


class _Origin(TypedDict, total=False):
    """What of the file beside vectors is read here."""

    input_sha256: str
    text_column: str | None
    prompt: str
    dimensions: int | None
    ranges: list[list[float]]


def find_similar(config: SimilarConfig) -> Iterator[str]:
    """The nearest texts of every query, by the cosine of their vectors, the nearest first.

    The vectors are read in blocks of 64 MB, and the texts once; nothing of either is kept.
    """
    vectors, kept = _open_vectors(config.vectors_file), origin_of(config.vectors_file)
    origin = read_typed(kept, _Origin, "make it with embed") if kept.is_file() else None
    queries, texts = _queries(config), _texts(config)
    hidden = known_model(config).config.hidden_size
    dimensions = config.dimensions or (origin or {}).get("dimensions")
    width, there = check_size(dimensions, hidden), vectors.shape[1]
    fits = there == (-(-width // 8) if vectors.dtype == TYPES[UBINARY] else width)
    if fits and origin is not None:  # bytes do not say how many of their bits are numbers
        there = origin.get("dimensions") or hidden
        fits = there == width
    if not fits:
        raise UserError(
            f"{config.vectors_file}: its vectors have {there} numbers, but those of "
            f"{config.model} have {width}; name the model that made them, or their `dimensions`."
        )
    ranges = np.array((origin or {}).get("ranges", ()), np.float32)
    if vectors.dtype == np.int8 and ranges.shape != (2, width):
        raise UserError(f"{kept}: says no ranges of the int8 vectors; make them with embed.")
    embedder = open_embedder(config, texts)
    prompt = _check_origin(config, embedder, origin, texts.column) if origin is not None else None
    asked_vectors = embedder.embed(queries, prompt, dimensions)
    try:
        numbers, cosines = nearest(vectors, asked_vectors, config.top_k, ranges)
    except NotComparableError as error:
        raise UserError(f"{config.vectors_file}: {error}; make it with embed.") from error
    picked = _pick(texts, set(numbers.ravel().tolist()), len(vectors), config)
    for query, some, alike in zip(queries, numbers.tolist(), cosines.tolist(), strict=True):
        found = [Found(n + 1, cosine, picked[n]) for n, cosine in zip(some, alike, strict=True)]
        yield from lines_of(query, found)


def search(config: SearchConfig) -> Iterator[str]:
    """Adds the texts of a file to an index, and searches it.

    A text is in an index once: what is there already, or empty, is not added. So the same command
    goes on after a stop, and a file that has grown adds its new texts.
    """
    queries, folder = _queries(config), config.index
    texts = _texts(config) if config.input_file else None
    if texts is None and not is_there(folder / DESCRIPTION):
        raise UserError(f"{folder}: no such index; give `input_file` to make it.")
    # What calibrates int8; it is read where that is needed.
    kept = (text for text in VectorIndex.open(folder).texts() if text) if texts is None else texts
    embedder = open_embedder(config, kept)
    # Looked at only now: another command may have made it while the model was opened.
    get = VectorIndex.open if is_there(folder / DESCRIPTION) else VectorIndex.create
    index = get(folder, embedder, size=config.dimensions, metric=config.metric)
    if texts is not None:
        with index.alone():
            index.check()
            _add(index, texts, embedder, folder)
    by_graph = config.method == HNSW or config.recall is not None
    by_graph = by_graph or (texts is not None and len(index) >= _MANY)
    if by_graph and config.method != EXACT and len(index):
        progress = Progress("link", len(index), "vectors")
        recall = index.build(progress.advance, config.recall)
        progress.close()
        said = (
            f"recall@10 of the graph: {recall['recall']:.3f} ({recall['queries']} of the "
            f"{recall['rows']} vectors searched for among the others; ef={recall['ef']})"
        )
        if recall["recall"] < (wanted := recall.get("wanted", WANTED_RECALL)):
            said += f"; {wanted} was wanted"
        if config.format == "json":
            _LOGGER.info(said)
        else:
            yield said
    found = index.search(queries, config.top_k, exact=config.method == EXACT) if queries else []
    for query, some in zip(queries, found, strict=True):
        yield from lines_of(query, some, config.format == "json")


def _add(index: VectorIndex, texts: Texts, embedder: "Embedder", folder: Path) -> None:
    known = {_digest(text) for text in index.texts() if text is not None}
    before, total = len(index), sum(1 for _ in texts)
    progress = Progress("index", total, "texts")
    embedder.advance = progress.advance

    def new() -> Iterator[str]:
        for text in texts:
            if text.strip() and (digest := _digest(text)) not in known:
                known.add(digest)
                yield text
            else:
                progress.advance()

    source = new()
    try:
        while some := list(islice(source, embedder.texts_at_once)):
            index.add(some)
    except KeyboardInterrupt as stop:
        stop.add_note(f"{len(index)} texts are in {folder}, and the same command goes on")
        raise
    progress.close()
    embedder.advance = lambda _: None
    added = len(index) - before
    _LOGGER.info(
        "%s: %d texts added, %d in all; %d were there already, or are empty.",
        *(folder, added, len(index), total - added),
    )


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _queries(config: QueriesConfig) -> list[str]:
    if not config.query_file:
        return [*config.query]
    with options_named({"text_column": "query_column"}):
        asked = open_texts(config.query_file, config.query_column, config.text_encoding)
    return [*config.query, *asked]


def _texts(config: QueriesConfig) -> Texts:
    texts = open_texts(config.input_file, config.text_column, config.text_encoding)
    next(iter(texts), None)  # a missing file is reported before the model is opened
    return texts


def _open_vectors(path: Path) -> NDArray[Any]:
    check_file(path)
    with reading(path, "a file of vectors", "make it with embed"):
        vectors = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=_MOST_OF_HEADER)
        is_known = vectors.ndim == 2 and 0 not in vectors.shape and vectors.dtype in TYPES.values()
    if not is_known:
        raise UserError(f"{path}: holds no vectors of {', '.join(TYPES)}; make it with embed.")
    return vectors


def _check_origin(
    config: SimilarConfig, embedder: "Embedder", origin: Mapping[str, Any], column: str | None
) -> str | None:
    """Looks at what `embed` kept of the vectors, and names the prompt of queries that fits it.

    That of queries where the vectors are of documents, else the default one.
    """
    made_with, settings = origin.get("prompt"), embedder.settings
    of_documents = made_with == settings.prompt_of(DOCUMENT)
    is_given = (config.prompt, config.prompt_name) != (None, None)
    model = {**model_of_vectors(embedder, settings), "prompt": made_with}
    fits = is_given or of_documents or made_with == settings.prompt
    if not fits or any(origin.get(name) != value for name, value in model.items()):
        raise UserError(
            f"{origin_of(config.vectors_file)}: says that the vectors were made with another "
            f"model than {config.model}, or with another pooling or prompt; name what made them, "
            "or make them again with embed."
        )
    made_of = (origin.get("input_sha256"), origin.get("text_column", column))
    if made_of != (file_sha256(Path(config.input_file)), column):
        _LOGGER.warning(
            "%s: says that the vectors were made of another file or column than %s, or "
            "before it was changed: the texts found may be wrong ones; embed makes them again.",
            *(origin_of(config.vectors_file), config.input_file),
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


def lines_of(query: str, found: Sequence[Found], as_json: bool = False) -> Iterator[str]:
    """The texts found as lines: the query, then its texts with score and id; or one of JSON."""
    if as_json:
        results = [one._asdict() for one in found]
        yield json_text({"query": query, "results": results}, ensure_ascii=False)
        return
    yield one_line(query)
    for one in found:
        yield f"  {one.score:.3f}  {one.id}  {one_line(str(one.text))}"
