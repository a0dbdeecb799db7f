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

import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from pipelines.fine_tuning.counts import Counted
from pipelines.tables.columns import check_columns, choose_columns, value_of
from pipelines.tables.files import Record, TableFile

_LOGGER = logging.getLogger(__name__)

PAIRS, TRIPLES, SCORES, MARGINS, CLASSES = "pairs", "triples", "scores", "margins", "classes"
_INFERENCE = {"entailment", "neutral", "contradiction"}
_UNLABELLED = ("-", "")  # pairs on which annotators did not agree

_PAIRS = (
    *(("anchor", "positive"), ("query", "positive"), ("query", "document"), ("query", "answer")),
    *(("question", "answer"), ("question", "context"), ("question", "document")),
    *(("질문", "답변"), ("질문", "답"), ("질문", "본문"), ("질문", "문서")),
)
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
    """Finds the columns that are named, and guesses the others where it is plain.

    Example:
        >>> file = TableFile("train.csv", "csv", ("question", "answer", "negative_1"))
        >>> choose_vector_columns(file, None, None, (), None)
        VectorColumns(texts=('question', 'answer', 'negative_1'), label=None)
    """
    if not negatives:
        negatives = [one for one in file.columns if _NEGATIVE.fullmatch(one)]
    lower = {column.lower(): column for column in file.columns}
    plain = [pair for pair in _PAIRS if set(pair) <= lower.keys()]
    if query is None and document is None and plain:
        query, document = (lower[name] for name in plain[0])
        _LOGGER.info("%s: pairs are the columns %r and %r.", file.name, query, document)
    if query and document and not label:  # a label is not needed, and asked for by its plain name
        label = next((lower[name] for name in ("label", "score", "margin") if name in lower), None)
        found = VectorColumns((query, document, *negatives), label)
    else:
        chosen = choose_columns(file, query, document, [label] if label else (), labelled=False)
        texts = [*chosen.texts, *(negatives if chosen.text_pair else ())]
        found = VectorColumns(tuple(texts), chosen.labels[0] if chosen.labels else None)
    if len(found.texts) == 1 and found.label is None:
        raise UserError(
            f"{file.name}: has single texts ({shown(found.texts[0])}) and nothing that says which "
            "belong together; name a `document_column`, or a `label_column` of their classes."
        )
    check_columns(file, [*found.texts, *([found.label] if found.label else ())])
    return found


@dataclass(frozen=True)
class VectorData:
    """A table in memory: each text once, and rows of their numbers.

    Attributes:
        texts: each a prompt and what follows it.
        rows: int32 [rows, columns]; of classes two texts of one class.
        labels: float32 [rows]: scores, margins, or numbers of classes; None of pairs and triples.
        classes: of single texts with classes the class of each text, int32 [texts].
    """

    name: str
    kind: str
    texts: Sequence[tuple[str, str]]
    rows: NDArray[np.int32]
    labels: NDArray[np.float32] | None = None
    classes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

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


def read_vector_data(
    file: TableFile, columns: VectorColumns, prompts: tuple[str, str], seed: int = 0
) -> VectorData:
    """Reads a table whole.

    Args:
        prompts: what stands in front of queries, and in front of documents and negatives.
        seed: draws which two texts of a class stand in one row.
    """
    numbers: dict[tuple[str, str], int] = {}
    rows, labels, empty = list[list[int]](), list[Any](), Counted()

    def number_of(column: int, text: str) -> int:
        return numbers.setdefault((prompts[column > 0], text), len(numbers))

    for record in file.records():
        texts = list(_texts_of(file, record, columns))
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
            labels.append(_label_of(file, record, columns.label))
    empty.warn(file.name, "rows without one of their texts, which are left out")
    if not rows:
        raise UserError(f"{file.name}: has no row with all its texts; name a file with some.")
    data = VectorData(file.name, PAIRS, list(numbers), np.array(rows, np.int32))
    if len(columns.texts) == 1:
        return _of_classes(data, labels, seed)
    if not columns.label:
        return replace(data, kind=TRIPLES if data.rows.shape[1] > 2 else PAIRS)
    if {str(label).strip().lower() for label in labels} - set(_UNLABELLED) <= _INFERENCE:
        return _of_inference(data, labels)
    kind = MARGINS if data.rows.shape[1] > 2 else SCORES
    return replace(data, kind=kind, labels=_numbers(file.name, columns.label, labels))


def _texts_of(file: TableFile, record: Record, columns: VectorColumns) -> Iterator[str]:
    """The texts of a row; a column of negatives may hold a list of them."""
    for column in columns.texts:
        value = value_of(file, record, column)
        for text in value if isinstance(value, list) else [value]:
            if text is not None and not isinstance(text, str):
                raise UserError(
                    f"{file.name}: line {record.line}: the column {shown(column)} has "
                    f"{shown(text)}, which is no text; name another column."
                )
            yield text or ""


def _label_of(file: TableFile, record: Record, column: str) -> Any:
    value = value_of(file, record, column)
    if value is None or value == "" or isinstance(value, list | dict):
        raise UserError(
            f"{file.name}: line {record.line} has no number and no class in the column "
            f"{shown(column)}; add one, or remove the line."
        )
    return value


def _numbers(name: str, column: str, labels: Sequence[Any]) -> NDArray[np.float32]:
    try:
        numbers = np.array([float(label) for label in labels], np.float32)
    except (TypeError, ValueError):
        numbers = np.array([np.nan], np.float32)
    if not np.isfinite(numbers).all():
        raise UserError(
            f"{name}: the column {shown(column)} of pairs holds neither numbers nor entailment, "
            "neutral and contradiction; name another `label_column`."
        )
    return numbers


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
    names = sorted(set(map(str, labels)))
    numbers = np.array([names.index(str(label)) for label in labels], np.int32)
    classes = np.zeros(len(data.texts), np.int32)
    classes[data.rows[:, 0]] = numbers
    draws = np.random.default_rng(seed)
    pairs = list[NDArray[np.int32]]()
    for number in range(len(names)):
        own = draws.permutation(np.unique(data.rows[numbers == number, 0]))
        if len(own) < 2:
            continue
        pairs.append(np.resize(own, [-(-len(own) // 2), 2]))
    if len(pairs) < 2:
        raise UserError(f"{data.name}: there must be two classes with two texts each.")
    rows = np.concatenate(pairs).astype(np.int32)
    of_rows = classes[rows[:, 0]].astype(np.float32)
    return replace(data, kind=CLASSES, rows=rows, labels=of_rows, classes=classes)
