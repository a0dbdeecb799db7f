"""An index of vectors: a folder that grows, and is searched exactly or by a graph.

`description.json` says what the vectors are (size, metric, model) and how well the graph finds
them; `graph` links the first of them (`nearest.py`); the rest are the rows (`index_files.py`).
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.checkpoints.sentence_modules import DOCUMENT, QUERY, SentenceSettings
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import followed, is_there, open_whole, owned, whole_folder
from keras_bert_impl.json_files import Count, json_text, read_typed
from keras_bert_impl.options import Rules
from keras_bert_impl.serving.exported import ExportedModel
from keras_bert_impl.serving.smaller_vectors import Vectors, check_size, unit
from pipelines.vectors.embed import model_of_vectors
from pipelines.vectors.index_files import AGAIN, IndexFiles
from pipelines.vectors.nearest import LEAST_EF, Graph, Numbers, grow_graph, nearest, read_links
from pipelines.vectors.options import COSINE, DOT, METRICS

if TYPE_CHECKING:
    from keras_bert_impl.serving.embedder import Embedder

_FORM = 1
DESCRIPTION, _GRAPH = "description.json", "graph"
_ASKED, _MOST_EF = 1000, 2048
WANTED_RECALL = 0.99  # of its own vectors; of others 0.98 and more was found then
_TOP = 10
_SAME = 1e-6  # of the largest: what rounding makes of two equal products
_LENGTH = "max_seq_length"
_OF_MODEL = {
    "pooling": "pooling",
    "prompt": "prompt",
    "normalize": "setting of normalize",
    _LENGTH: f"`{_LENGTH}`",
}


_Wanted = Annotated[float, Rules(sentence="", more_than=0, at_most=1)]


class Found(NamedTuple):
    """A text that was found; `score` is the cosine or the product of the vectors."""

    id: int | str
    score: float
    text: str | None


class Recall(TypedDict):
    """How well a graph finds: the share of the ten nearest, over `queries` of its own vectors."""

    rows: Count
    ef: Annotated[int, Rules(sentence="", at_least=1, at_most=2 * _MOST_EF)]
    recall: Annotated[float, Rules(sentence="", at_least=0, at_most=1)]
    queries: Count
    wanted: NotRequired[_Wanted]  # where it is not the usual one


_Size = Annotated[int, Rules(sentence="", at_least=1, at_most=1 << 20)]


class _Sizes(TypedDict):
    hidden_size: _Size


class _ModelOfVectors(TypedDict):
    """What is read of a model before it is compared with another one."""

    sizes: _Sizes


class _Description(TypedDict):
    form: Count
    size: _Size
    metric: Literal["cosine", "dot"]
    model: _ModelOfVectors | None
    graph: NotRequired[Recall]


class VectorIndex:
    """Texts with their vectors in a folder, to be searched.

    What `add` has returned from is on the disk, whatever happens then. An object sees what was
    there when it was opened, and what it adds itself; any number may be open. The files are
    mapped: memory is what the system keeps of them, and may take back. A search by the graph
    touches some thousand vectors, an exact one all (1.5 GB of a million with 384 numbers).

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "index"
        >>> index = VectorIndex.create(folder, size=2)
        >>> index.add(["north", "east"], vectors=[[0, 1], [2, 0]])
        >>> index.add(["north-east"], ids=["ne"], vectors=[[1, 1]])
        >>> index.search([[3, 1]], top_k=2)
        [[Found(id=2, score=0.9..., text='east'), Found(id='ne', score=0.89..., text='north-east')]]
        >>> len(VectorIndex.open(folder))
        3
    """

    def __init__(self, folder: Path, model: "Embedder | None") -> None:
        self._folder, self._model = folder, model
        self._lock, self._is_alone = threading.RLock(), False
        self._description = self._read_description()
        self._files = IndexFiles(folder, self._description["size"])
        self._graph = self._read_graph()
        self._description = self._read_description()  # which may have come with a newer graph

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        model: "Embedder | str | None" = None,
        *,
        size: int | None = None,
        metric: str | None = None,
    ) -> "VectorIndex":
        """Makes an empty index.

        Args:
            folder: a new one.
            model: makes vectors of texts, with its prompts for documents and queries.
            size: how many numbers a vector has; with a model how many of the first are kept.
            metric: "cosine", or "dot", the product of the vectors as they are; by default what the
                model's files say, else "cosine".
        """
        path, embedder = Path(folder), _opened(model)
        if is_there(path) and (not path.is_dir() or any(path.iterdir())):
            raise UserError(f"{path}: is there already; name a new folder, or open it.")
        metric = metric or (embedder.settings.similarity if embedder else COSINE)
        if metric not in METRICS:
            raise UserError(f"`metric={metric}` is unknown; choose {', '.join(METRICS)}.")
        width = check_size(size, embedder.width) if embedder else size
        if not width:
            raise UserError("an index needs the model of its vectors, or their size; give one.")
        model_is = embedder and _identity(embedder, embedder.settings, metric)
        description = {"form": _FORM, "size": width, "metric": metric, "model": model_is}
        with whole_folder(followed(path), replaces=False) as new:  # another process may make it
            (new / DESCRIPTION).write_text(json_text(description, indent=1), encoding="utf-8")
            IndexFiles.make(new)
        return cls(path, embedder)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        model: "Embedder | str | None" = None,
        *,
        size: int | None = None,
        metric: str | None = None,
    ) -> "VectorIndex":
        """Opens an index; without its model only vectors can be added or searched for.

        Args:
            size: the size that is expected; by default any, and so is `metric`.

        Raises:
            UserError: it is no index, of another model, size, prompt or metric, or cut off.
        """
        path = Path(folder)
        if not is_there(path / DESCRIPTION):
            raise UserError(f"{path}: is no index (it has no {DESCRIPTION}); make it with search.")
        embedder = _opened(model)
        index = cls(path, embedder)
        kept = index._description
        if kept["form"] != _FORM:
            raise UserError(f"{path}: was made by another version; {AGAIN}.")
        wanted = {"metric": (metric, kept["metric"]), "dimensions": (size, kept["size"])}
        for name, (asked, there) in wanted.items():
            if asked not in (None, there):
                raise UserError(f"{path}: has `{name}={there}`; leave out `{name}={asked}`.")
        if embedder:
            index.check_model(embedder, embedder.settings)
        return index

    def check_model(
        self, known: "ModelSource | ExportedModel | Embedder", settings: SentenceSettings
    ) -> None:
        """Refuses a model that did not make these vectors."""
        kept, width = self._description, known.config.hidden_size
        made: Any = kept["model"]
        its_width = made["sizes"]["hidden_size"] if made else kept["size"]
        if width != its_width:
            raise UserError(
                f"{self._folder}: its vectors are of a model with {its_width} numbers, but this "
                f"one has {width}; name the model that made them."
            )
        now = _identity(known, settings, kept["metric"]) if made else {}
        for name, value in now.items():
            # An index of before does not say at what length its texts were cut.
            if made.get(name, value if name == _LENGTH else None) != value:
                what = _OF_MODEL.get(name, "model")
                raise UserError(f"{self._folder}: was made with another {what}; name what made it.")

    def __len__(self) -> int:
        return len(self._files.vectors)

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return self._description["size"]

    @property
    def recall(self) -> Recall | None:
        """How well the graph finds, as `build` measured it; None where no graph is used."""
        return self._recall_of(self._graph)

    def _recall_of(self, graph: Graph | None) -> Recall | None:
        found = self._description.get("graph")
        return found if found and graph and found["rows"] == graph.rows else None

    def add(
        self,
        texts: Iterable[str | None] | None = None,
        ids: Iterable[int | str] | None = None,
        vectors: ArrayLike | None = None,
    ) -> None:
        """Adds rows at the end; of many texts a block is there after the other, whole or absent.

        Args:
            texts: what is given back when it is found.
            ids: texts, or whole numbers of 64 bits; by default the rows' numbers, from 1.
            vectors: [rows, size]; by default the model makes them of the texts.
        """
        own = [texts] if isinstance(texts, str) else texts
        texts = None if own is None else _kept("texts", own, _is_text, "a text")
        number = "a text or a whole number of 64 bits"
        ids = None if ids is None else _kept("ids", ids, _is_id, number)
        rows = None if vectors is None else self._units(vectors)
        if rows is None and (texts is None or self._model is None):
            raise UserError("without its model an index takes vectors only; give them.")
        count = len(texts or ()) if rows is None else len(rows)
        for name, given in (("texts", texts), ("ids", ids)):
            if given is not None and len(given) != count:
                raise UserError(f"`{name}`: there are {len(given)} for {count} rows.")
        block = count if self._model is None or rows is not None else self._model.texts_at_once
        for start in range(0, count, block or 1):
            some = slice(start, start + block)
            block_texts = [None] * count if texts is None else texts[some]
            found = self._embedded(block_texts, DOCUMENT) if rows is None else rows
            with self.alone():
                self._files.append(found, ids and ids[some], block_texts)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside the block no other process adds, and what they have added is seen."""
        folder = self._folder
        with self._lock:
            if self._is_alone:  # within another block
                yield
                return
            with owned(folder / ".lock", f"{folder}: another process adds to it; wait for it."):
                self._files.see()
                self._is_alone = True
                try:
                    yield
                finally:
                    self._is_alone = False

    def build(
        self, advance: Callable[[int], object] = lambda _: None, wanted: float | None = None
    ) -> Recall:
        """Links all vectors into a graph, and measures what it finds; goes on where it was stopped.

        A thousand of the index's own vectors are searched for, each left out of its own answer, by
        the graph and exactly. The search widens until it finds the share that is wanted of the ten
        nearest: 0.99, unless the index keeps another from before. A smaller one is faster.
        """
        if wanted is not None and not (
            isinstance(wanted, int | float | np.floating) and 0 < wanted <= 1
        ):
            raise UserError(f"a recall is more than 0 and at most 1; {shown(wanted)} is none.")
        found = self.recall
        if found and found["rows"] == len(self) and wanted in (None, _wanted(found)):
            return found  # without the lock: another process may be adding
        with self.alone():
            if not len(self):
                raise UserError(f"{self._folder}: has no vectors to link; add some.")
            # Read again: another process may have wanted something else meanwhile.
            kept = self._read_description()
            wanted = _wanted(kept.get("graph")) if wanted is None else float(wanted)
            grow_graph(self._folder / _GRAPH, self._files.vectors, advance)
            self._graph = self._read_graph()
            found = self._measured(wanted)
            if wanted != WANTED_RECALL:
                found["wanted"] = wanted
            self._description = {**kept, "graph": found}
            with open_whole(self._folder / DESCRIPTION) as file:
                file.write(json_text(self._description, indent=1))
        return found

    def _measured(self, wanted: float) -> Recall:
        assert self._graph is not None
        asked = np.unique(np.linspace(0, len(self) - 1, _ASKED).astype(np.int64))
        queries = np.ascontiguousarray(self._files.vectors[asked])
        count = min(_TOP, len(self) - 1)

        def others(numbers: Numbers, scores: Vectors) -> Vectors:
            """The scores of the first `count` that are not the query itself."""
            own = numbers == asked[:, None]
            own[~own.any(axis=1), -1] = True  # not met, or behind equal ones
            return scores[~own].reshape(len(asked), count)

        exact = self._exact(0, queries, count + 1)
        least = others(*exact)[:, -1:] - _SAME * np.abs(exact[1]).max(axis=1, keepdims=True)
        ef, recall = LEAST_EF, 0.0
        while True:
            met = others(*self._graph.search(queries, count + 1, ef))
            recall = float(np.mean(met >= least)) if count else 1.0
            if recall >= wanted or ef >= _MOST_EF:
                return {"rows": len(self), "ef": ef, "recall": recall, "queries": len(asked)}
            ef += ef // 2 + 1

    def search(self, queries: Any, top_k: int = _TOP, *, exact: bool = False) -> list[list[Found]]:
        """The nearest rows of each query, the nearest first.

        Args:
            queries: texts, or vectors [queries, size]; one text or vector is one query.
            exact: look at every vector, although there is a graph.
        """
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            queries = [queries]
        is_array = isinstance(queries, np.ndarray)
        queries = np.atleast_1d(queries) if is_array else list(queries)
        if len(queries) and isinstance(queries[0], str):
            queries = self._embedded(queries, QUERY)
        if not len(queries):
            return []
        numbers, scores = self.nearest(queries, top_k, exact=exact)
        return [
            [self._found(n, score) for n, score in zip(*one, strict=True) if n >= 0]
            for one in zip(numbers.tolist(), scores.tolist(), strict=True)
        ]

    def _found(self, number: int, score: float) -> Found:
        row, text = self._files.row(number)
        return Found(row, score, text)

    def nearest(
        self, queries: ArrayLike, count: int, *, exact: bool = False
    ) -> tuple[Numbers, Vectors]:
        """The numbers, from 0, and scores of the nearest rows; see `nearest`."""
        if not isinstance(count, int | np.integer) or count < 1:
            raise UserError(f"`top_k={count}` must be a whole number from 1 on.")
        wanted, graph = self._units(queries), self._graph  # `build` may replace it meanwhile
        recall = None if exact else self._recall_of(graph)
        linked = recall["rows"] if recall else 0
        numbers, scores = self._exact(linked, wanted, count)
        if graph is None or recall is None:
            return numbers, scores
        met, theirs = graph.search(wanted, min(count, linked), recall["ef"])
        numbers = np.concatenate([met, numbers + linked], axis=1)
        scores = np.concatenate([theirs, scores], axis=1)
        best = np.lexsort((numbers, -scores))[:, :count]
        return np.take_along_axis(numbers, best, axis=1), np.take_along_axis(scores, best, axis=1)

    def _exact(self, first: int, queries: Vectors, count: int) -> tuple[Numbers, Vectors]:
        """`nearest` among the vectors from one on; of the cosine they have length 1."""
        longest = 1.0 if self._description["metric"] == COSINE else None
        return nearest(self._files.vectors[first:], queries, count, score=DOT, longest=longest)

    def texts(self) -> Iterator[str | None]:
        """The texts, in the order in which they were added."""
        return (self._files.row(number)[1] for number in range(len(self)))

    def check(self) -> None:
        """Sees that all rows are what was written; reads the whole folder."""
        self._files.check()

    def _read_description(self) -> _Description:
        return read_typed(self._folder / DESCRIPTION, _Description, AGAIN)

    def _read_graph(self) -> Graph | None:
        """That of the rows it links, as they are mapped now: other threads search by it."""
        vectors = self._files.vectors
        try:
            links = read_links(self._folder / _GRAPH, vectors)
        except UserError:
            self._files.see()  # another process may have added rows and linked them meanwhile
            if len(self) > len(vectors):
                return self._read_graph()
            raise
        return Graph(links, vectors) if links else None

    def _embedded(self, texts: Sequence[str | None], prompt: str) -> Vectors:
        model = self._model
        if model is None:
            raise UserError(f"{self._folder}: open it with its model to search for texts.")
        return self._units(model.embed(texts, model.settings.named(prompt), self.size))

    def _units(self, vectors: ArrayLike) -> Vectors:
        """Vectors as they are kept: of length 1, where the metric is the cosine."""
        try:
            with np.errstate(over="ignore"):
                found = np.atleast_2d(np.ascontiguousarray(vectors, np.float32))
        except (TypeError, ValueError):
            raise UserError(f"{self._folder}: give vectors that are a table of numbers.") from None
        if found.ndim != 2 or found.shape[1] != self.size:
            raise UserError(
                f"{self._folder}: holds vectors of {self.size} numbers, and is given "
                f"{list(found.shape)}; give [vectors, {self.size}]."
            )
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", found, found)
        if not np.isfinite(squares).all():
            raise UserError(
                f"{self._folder}: no vector may be NaN, infinite, or too large to be multiplied."
            )
        return unit(found) if self._description["metric"] == COSINE else found


def _wanted(recall: Recall | None) -> float:
    return recall.get("wanted", WANTED_RECALL) if recall else WANTED_RECALL


def _is_text(value: Any) -> bool:
    return isinstance(value, str | None)


def _is_id(value: Any) -> bool:
    is_number = type(value) is int and -(1 << 63) <= value < 1 << 64  # what JSON is written of
    return is_number or isinstance(value, str)


def _kept(name: str, given: Any, fits: Callable[[Any], bool], must: str) -> list[Any]:
    """Values as they are kept: NumPy's whole numbers become Python's."""
    found = given if isinstance(given, Iterable) else [given]
    values = [int(one) if isinstance(one, np.integer) else one for one in found]
    for one in values:
        if not fits(one):
            raise UserError(f"`{name}`: {shown(one)} is not {must}.")
    return values


def _opened(model: "Embedder | str | None") -> "Embedder | None":
    if not isinstance(model, str | os.PathLike):
        return model
    from keras_bert_impl.serving.embedder import Embedder

    return Embedder.from_pretrained(model)


def _identity(
    known: "ModelSource | ExportedModel | Embedder", settings: SentenceSettings, metric: str
) -> dict[str, Any]:
    """That of a model without which its vectors cannot be compared with others."""
    prompt = settings.prompt_of(settings.named(DOCUMENT))
    scaled = {"normalize": settings.normalize} if metric == DOT else {}
    length = {_LENGTH: settings.max_seq_length or known.config.max_position_embeddings}
    return {**model_of_vectors(known, settings), "prompt": prompt, **scaled, **length}
