"""Tables of texts that vectors are trained and judged by, and what their columns say.

Each row has one text or several, and perhaps a label:

| columns | kind |
|---|---|
| query, document | pairs: the document answers the query |
| query, document, negatives | triples: the negatives do not |
| text, text, number | scores: how alike both are |
| query, document, negative, number | margins: how much nearer the document is, by a teacher |
| text, text, entailment / neutral / contradiction | inference: made into triples by their premise |
| text, class | classes: texts of one class belong together |
"""

import contextlib
import logging
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from pipelines.fine_tuning.counts import Counted
from pipelines.tables.columns import (
    PAIRS_OF_A_SEARCH,
    PAIRS_OF_TEXTS,
    check_columns,
    choose_columns,
    value_of,
)
from pipelines.tables.files import Record, TableFile

_LOGGER = logging.getLogger(__name__)

PAIRS, TRIPLES, SCORES, MARGINS, CLASSES = "pairs", "triples", "scores", "margins", "classes"
_INFERENCE = {"entailment", "neutral", "contradiction", "-"}  # the last: no agreement

_NEGATIVE = re.compile(r"(hard_)?neg(ative)?s?(_?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class VectorColumns:
    """Where a table has what: the texts in the order query, document, negatives, and the label."""

    texts: tuple[str, ...]
    label: str | None = None


def choose_vector_columns(
    file: TableFile,
    query: str | None,
    document: str | None,
    negatives: Sequence[str],
    label: str | None,
) -> VectorColumns:
    """Finds the columns that are named, and guesses the others where it is plain."""
    if not negatives:
        negatives = [one for one in file.columns if _NEGATIVE.fullmatch(one)]
    lower = {column.lower(): column for column in file.columns}
    plain = [pair for pair in PAIRS_OF_A_SEARCH if set(pair) <= lower.keys()]
    if query is None and document is None and plain:
        query, document = (lower[name] for name in plain[0])
        _LOGGER.info("%s: pairs are the columns %r and %r.", file.name, query, document)
    elif query is not None and document is None and label is None:
        known = [pair for pair in PAIRS_OF_TEXTS if pair[0] == query.lower()]
        pairs = (*known, *PAIRS_OF_A_SEARCH)
        taken = {query, *negatives}
        found = [lower[name] for _, name in pairs if lower.get(name, query) not in taken]
        for document in found[:1]:
            _LOGGER.info("%s: the document is taken from the column %r.", file.name, document)
    without_label = label == ""
    if query and document and not label:  # a label is not needed, and asked for by its plain name
        texts, names = [query, document], ("label", "score", "margin", "is_duplicate")
        label = next((lower[name] for name in names if name in lower), None)
    else:
        try:
            chosen = choose_columns(
                file, query, document or None, [label] if label else (), labelled=False
            )
        except UserError as error:  # they are called otherwise here
            said = str(error).replace("text_pair_column", "document_column")
            raise UserError(said.replace("text_column", "query_column")) from error
        texts, label = chosen.texts, next(iter(chosen.labels), None)
        texts = texts[:1] if document == "" else texts
    label = None if without_label else label
    if len(texts) == 1 and label is None:
        raise UserError(
            f"{file.name}: has single texts ({shown(texts[0])}) and nothing that says which "
            "belong together; name a `document_column`, or a `label_column` of their classes."
        )
    texts += negatives if len(texts) > 1 else ()
    check_columns(file, [*texts, *([label] if label else ())])
    return VectorColumns(tuple(texts), label)


@dataclass(frozen=True)
class VectorData:
    """A table in memory: each text once, and rows of their numbers."""

    name: str
    kind: str
    texts: Sequence[tuple[str, str]]  # each a prompt and what follows it
    rows: NDArray[np.int32]  # [rows, columns]; of classes two texts of one class
    # Scores, margins (perhaps [rows, negatives]) or numbers of classes; of pairs and triples None.
    labels: NDArray[np.float32] | None = None
    classes: NDArray[np.int32] | None = None  # those of single texts, [texts]

    def rows_crc32(self, how: str) -> str:
        """What tells the rows and labels from others; `how` is what else is done with them."""
        labels = b"" if self.labels is None else self.labels.tobytes()
        return f"{zlib.crc32(self.rows.tobytes() + labels + how.encode()):08x}"

    def words(self, numbers: Iterable[int]) -> list[str]:
        """What some texts say without their prompts."""
        return [self.texts[number][1] for number in numbers]

    @cached_property
    def queries(self) -> NDArray[np.int32]:
        """The texts that are queries, each once."""
        return np.unique(self.rows[:, 0])

    @cached_property
    def documents(self) -> NDArray[np.int32]:
        """The texts that are searched, each once: positives and negatives."""
        return np.unique(self.rows[:, 1:])

    @cached_property
    def relevant(self) -> list[set[int]]:
        """The documents of each query, numbered as in `documents`."""
        found: dict[int, set[int]] = defaultdict(set)
        places = np.searchsorted(self.documents, self.rows[:, 1])
        for query, place in zip(self.rows[:, 0].tolist(), places.tolist(), strict=True):
            found[query].add(place)
        return [found[query] for query in self.queries.tolist()]

    @cached_property
    def never(self) -> list[set[int]]:
        """What is no negative of each query: its documents, and one that says the same."""
        places = {text: {number} for number, text in enumerate(self.words(self.documents))}
        said = self.words(self.queries)
        return [
            own | places.get(text, set()) for own, text in zip(self.relevant, said, strict=True)
        ]

    def drawn(self, draws: np.random.Generator) -> "VectorData":
        """The table with as many of its rows, drawn from them, and as many queries.

        The documents stay: fewer would be easier to search.
        """
        rows = draws.integers(len(self.rows), size=len(self.rows))
        labels = None if self.labels is None else self.labels[rows]
        other = replace(self, rows=self.rows[rows], labels=labels)
        chosen = draws.integers(len(self.queries), size=len(self.queries))
        relevant = [self.relevant[number] for number in chosen.tolist()]
        kept = {"queries": self.queries[chosen], "documents": self.documents, "relevant": relevant}
        vars(other).update(kept)  # in place of what would follow from the rows
        return other


def others_of(own: set[int], size: int, count: int, draws: np.random.Generator) -> list[int]:
    """Up to `count` of the numbers below `size` that are not the `own`, in a random order."""
    drawn = draws.choice(size, min(size, count + len(own)), replace=False)
    return [one for one in drawn.tolist() if one not in own][:count]


def read_vector_data(
    file: TableFile, columns: VectorColumns, prompts: Sequence[str] = ("", "", ""), seed: int = 0
) -> VectorData:
    """Reads a table whole; the `seed` draws which two texts of a class stand in one row.

    The `prompts` stand in front of queries, of documents and negatives, and of texts that are
    neither: those of scores and classes.
    """
    numbers: dict[tuple[int, str], int] = {}  # by what a text is: 0 a query, 1 a document
    rows, labels, empty = list[list[int]](), list[tuple[int, Any]](), Counted()

    def number_of(column: int, text: str) -> int:
        return numbers.setdefault((int(column > 0), text), len(numbers))

    for record in file.records():
        (query,), documents, *negatives = _texts_of(file, record, columns)
        for document in documents:
            texts = [query, *document, *(text for some in negatives for text in some)]
            if not all(map(str.strip, texts)):
                empty.add(f"on line {record.line}")
                continue
            rows.append([number_of(column, text) for column, text in enumerate(texts)])
            if len(rows[-1]) != len(rows[0]):
                raise UserError(
                    f"{file.name}: line {record.line} has {len(rows[-1])} texts, the first row "
                    f"{len(rows[0])}; give every row as many negatives."
                )
            if columns.label:
                labels.append((record.line, _label_of(file, record, columns)))
    empty.warn(file.name, "rows without one of their texts, which are left out")
    if not rows:
        raise UserError(f"{file.name}: has no row with all its texts; name a file with some.")
    found = list(numbers)
    data = VectorData(file.name, PAIRS, [("", text) for _, text in found], np.array(rows, np.int32))
    data = _of_kind(data, columns, labels, seed)
    alike = data.kind in (SCORES, CLASSES)
    named = [(prompts[2 if alike else role], text) for role, text in found]
    again: dict[tuple[str, str], int] = {}  # one that is both, with one prompt, is one text
    places = np.array([again.setdefault(one, len(again)) for one in named], np.int32)
    return replace(data, texts=list(again), rows=places[data.rows])


def _of_kind(
    data: VectorData, columns: VectorColumns, labels: Sequence[tuple[int, Any]], seed: int
) -> VectorData:
    """The rows of a table as what its columns and labels, each with its line, make of them."""
    values = [label for _, label in labels]
    if len(columns.texts) == 1:
        return _of_classes(data, values, seed)
    if not columns.label:
        return replace(data, kind=TRIPLES if data.rows.shape[1] > 2 else PAIRS)
    pairs = data.rows.shape[1] == 2
    is_word = [pairs and str(label).strip().lower() in _INFERENCE for label in values]
    if all(is_word):
        return _of_inference(data, values)
    is_inference = {one.lower() for one in columns.texts} == {"premise", "hypothesis"}
    kind = SCORES if pairs else MARGINS
    with contextlib.suppress(TypeError, ValueError):  # at once, where all are numbers
        whole = np.array(values).astype(np.float32)
        if not is_inference and np.isfinite(whole).all():
            return replace(data, kind=kind, labels=whole)
    numbers = [_numbers_of(label) for label in values]
    wrong = [
        place
        for place, some in enumerate(numbers)
        if is_inference or some.shape != numbers[0].shape or not np.isfinite(some).all()
    ]
    if not wrong:
        return replace(data, kind=kind, labels=np.array(numbers))
    line, label = labels[min(wrong, key=is_word.__getitem__)]  # a word is right in another column
    words = ["entailment, neutral and contradiction"] if pairs else []
    wanted = [*words, *([] if is_inference else ["numbers" if pairs else "as many numbers a row"])]
    raise UserError(
        f"{data.name}: line {line} has {shown(label)}, but the column {shown(columns.label)} must "
        f"hold {', or '.join(wanted)}; correct the line, name another `label_column`, or none "
        "with `label_column=`."
    )


def _numbers_of(label: Any) -> NDArray[np.float32]:
    """A number or a list of them; true is 1, false is 0, and what is no number is NaN."""
    found = []
    for one in label if isinstance(label, list) else [label]:
        word = str(one).strip().lower()
        try:
            found.append(float({"true": 1, "false": 0}.get(word, word)))
        except ValueError:
            found.append(np.nan)
    with np.errstate(over="ignore"):  # infinite, which is refused
        return np.array(found if isinstance(label, list) else found[0]).astype(np.float32)


def _texts_of(file: TableFile, record: Record, columns: VectorColumns) -> Iterator[list[Any]]:
    """The texts of each column; of documents a list of one each, and negatives may be a list."""
    for number, column in enumerate(columns.texts):
        value = value_of(file, record, column)
        texts = value if isinstance(value, list) and number else [value]
        for text in texts:
            if text is not None and not isinstance(text, str):
                raise UserError(
                    f"{file.name}: line {record.line}: the column {shown(column)} has "
                    f"{shown(text)}, which is no text; name another column."
                )
        yield [[text or ""] for text in texts] if number == 1 else [text or "" for text in texts]
    if len(columns.texts) == 1:
        yield [[]]  # a row has no document


def _label_of(file: TableFile, record: Record, columns: VectorColumns) -> Any:
    value = value_of(file, record, str(columns.label))
    of_negatives = isinstance(value, list) and len(columns.texts) > 2
    is_empty = value is None or not str(value).strip()
    if is_empty or (isinstance(value, list | dict) and not of_negatives):
        raise UserError(
            f"{file.name}: line {record.line} has no number and no class in the column "
            f"{shown(columns.label)}; add one, or remove the line."
        )
    return value


def _of_inference(data: VectorData, labels: Sequence[str]) -> VectorData:
    """Triples of a premise, what follows from it, and what contradicts it."""
    found: dict[int, Mapping[str, list[int]]] = {}
    for (premise, hypothesis), label in zip(data.rows.tolist(), labels, strict=True):
        found.setdefault(premise, defaultdict(list))[label.strip().lower()].append(hypothesis)
    triples = [
        (premise, entailed, of["contradiction"][number % len(of["contradiction"])])
        for premise, of in found.items()
        for number, entailed in enumerate(of["entailment"] if of["contradiction"] else ())
    ]
    _LOGGER.info("%s: %d triples of %d pairs.", data.name, len(triples), len(data.rows))
    if not triples:
        raise UserError(
            f"{data.name}: no premise has both an entailment and a contradiction; give pairs or "
            "triples instead."
        )
    return replace(data, kind=TRIPLES, rows=np.array(triples, np.int32))


def _of_classes(data: VectorData, labels: Sequence[Any], seed: int) -> VectorData:
    """Pairs of texts of one class; of an odd number one text is in two of them."""
    names, classes_of, twice = dict[str, int](), dict[int, int](), set[int]()
    for text, label in zip(data.rows[:, 0].tolist(), labels, strict=True):
        number = names.setdefault(str(label), len(names))
        if classes_of.setdefault(text, number) != number:
            twice.add(text)
    if twice:
        _LOGGER.warning(
            "%s: %d texts have several classes and are not trained on, the first %s.",
            *(data.name, len(twice), shown(data.texts[min(twice)][1])),
        )
    classes = np.array([classes_of[text] for text in range(len(data.texts))], np.int32)
    draws = np.random.default_rng(seed)
    texts = draws.permutation([text for text in range(len(data.texts)) if text not in twice])
    by_class = texts[np.argsort(classes[texts], kind="stable")]
    ends = np.flatnonzero(np.diff(classes[by_class])) + 1
    pairs = [
        np.resize(own, [-(-len(own) // 2), 2]) for own in np.split(by_class, ends) if len(own) > 1
    ]
    if len(pairs) < 2:
        raise UserError(f"{data.name}: there must be two classes with two texts each.")
    rows = np.concatenate(pairs).astype(np.int32)
    of_rows = classes[rows[:, 0]].astype(np.float32)
    return replace(data, kind=CLASSES, rows=rows, labels=of_rows, classes=classes)
