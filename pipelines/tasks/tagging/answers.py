"""From a model's logits to the tags of all words, and to the entities in the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields, utf16_offsets
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.fine_tuning.task import Task
from pipelines.metrics.entities import OUTSIDE, Entity
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.row_form import RowForm, single_rows
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.rows import UNIT_END, UNIT_START
from pipelines.tasks.tagging.schemes import CHARACTERS, Scheme
from pipelines.tasks.tagging.texts import Span, items_of


class TextEntity(NamedTuple):
    """An entity in a text."""

    type: str
    text: str  # `text[start:end]` of the document's text
    start: int
    end: int
    score: float  # the mean probability of the tags of its words (or tokens)


class TagAnswer(NamedTuple):
    """The answer of a model to a document."""

    tags: Sequence[Sequence[str]]
    entities: Sequence[TextEntity]


@dataclass(frozen=True)
class Units:
    """The units of a document that tags were predicted for, [units]."""

    start: Numbers  # the first item of each
    end: Numbers  # the item after its last one
    label: Numbers  # the number of its tag
    score: NDArray[np.float32]  # the tag's probability

    def between(self, start: int, end: int) -> "Units":
        """The units whose first item is one of `start` to `end`, counted from `start`."""
        own = slice(*np.searchsorted(self.start, [start, end]))
        return Units(
            self.start[own] - start, self.end[own] - start, self.label[own], self.score[own]
        )


def units_of(rows: Rows, logits: NDArray[np.float32]) -> list[Units]:
    """Joins the windows of each document: every unit once, from the window that owns it.

    `logits` are float32 [tokens of all rows, labels].
    """
    owned = rows.tokens[UNIT_END] > 0
    documents = np.repeat(rows.examples, rows.lengths)[owned]
    own = logits[owned].astype(np.float32)  # [units, labels]
    labels = own.argmax(axis=-1)
    scores = 1 / np.exp(own - own.max(axis=-1, keepdims=True)).sum(axis=-1)
    count = int(rows.examples[-1]) + 1 if len(rows) else 0
    borders = np.searchsorted(documents, np.arange(1, count))
    start, end = (rows.tokens[name][owned].astype(np.int64) for name in (UNIT_START, UNIT_END))
    arrays = (np.split(array, borders) for array in (start, end, labels, scores))
    return [Units(*parts) for parts in zip(*arrays, strict=True)]


def answer(
    document: Document, units: Units, labels: Sequence[str], scheme: Scheme, unit: str
) -> TagAnswer:
    """Gives every word or character of a document its tag, and finds the entities."""
    text, lines = laid_out(document, unit)
    tags, entities, before = list[list[str]](), list[TextEntity](), 0
    find = _of_characters if unit == CHARACTERS else _of_words
    for items in lines:
        own = units.between(before, before + len(items))
        given, found = find(own, len(items), labels, scheme)
        tags.append(given)
        for entity, score in found:
            start, end = items[entity.start][0], items[entity.end - 1][1]
            entities.append(TextEntity(entity.type, text[start:end], start, end, score))
        before += len(items)
    return TagAnswer(tags, entities)


_Tagged = tuple[list[str], list[tuple[Entity, float]]]
"""The tags of a sentence's words or characters, and the entities with their scores."""


def _of_words(units: Units, count: int, labels: Sequence[str], scheme: Scheme) -> _Tagged:
    """A word is a unit; one without a token has none, and the tag "O"."""
    scores = np.zeros(count, np.float32)
    scores[units.start] = units.score
    tags = [OUTSIDE] * count
    for word, label in zip(units.start.tolist(), units.label.tolist(), strict=True):
        tags[word] = labels[label]
    return tags, [(x, float(scores[x.start : x.end].mean())) for x in scheme.entities(tags)]


def _of_characters(units: Units, count: int, labels: Sequence[str], scheme: Scheme) -> _Tagged:
    """A token is a unit; an entity reaches from its first one's to its last one's characters.

    A character of several tokens, as a syllable that is taken apart, is the first one's: otherwise
    an entity could begin inside another one.
    """
    starts = np.maximum(units.start, np.concatenate([[0], units.end])[:-1])
    own = starts < units.end
    starts, ends, scores = starts[own], units.end[own], units.score[own]
    found = list[tuple[Entity, float]]()
    for x in scheme.entities([labels[number] for number in units.label[own].tolist()]):
        entity = Entity(x.type, int(starts[x.start]), int(ends[x.end - 1]))
        found.append((entity, float(scores[x.start : x.end].mean())))
    return scheme.write([entity for entity, _ in found], count), found


def laid_out(document: Document, unit: str) -> tuple[str, Sequence[Sequence[Span]]]:
    r"""The text of a document, and where the items of each sentence are in it.

    A text that a file does not have: words with single blanks between them, sentences with line
    breaks.

    Example:
        >>> first = Sentence(("It", "rains"), None, ("It", "rains"), (1, 2))
        >>> laid_out(Document((first, first)), "words")
        ('It rains\nIt rains', [[(0, 2), (3, 8)], [(9, 11), (12, 17)]])
    """
    if document.text is not None:
        return document.text, document.places
    gap, begin, lines = "" if unit == CHARACTERS else " ", 0, list[list[Span]]()
    for sentence in document.sentences:
        lines.append([])
        for item in sentence.items:
            lines[-1].append((begin, begin + len(item)))
            begin += len(item) + len(gap)
        begin += 1 - len(gap)
    return "\n".join(gap.join(sentence.items) for sentence in document.sentences), lines


_OUTPUTS = {
    "type": "the type of each entity",
    "text": "its characters",
    "start": "the position of its first character",
    "end": "the position after its last one",
    "start_utf16": "the same in UTF-16 units, as JavaScript counts",
    "end_utf16": "the same in UTF-16 units",
    "score": "the mean probability of its words' tags",
    "count": "how many there are",
}


class EntityForm(RowForm):
    """A text to its entities."""

    kind = "entities"
    inputs = (Input("text", about="a text"),)
    outputs = _OUTPUTS
    model_outputs = token_outputs = ("logits",)
    has_windows = True

    def __init__(
        self,
        task: Task[Document, TagAnswer],
        unit: str,
        model: KnownModel,
        max_seq_length: int,
        *,
        raw: bool,
    ) -> None:
        self.signature, self._raw = ("raw_text" if raw else "text"), raw
        self._task, self._unit, self.max_seq_length = task, unit, max_seq_length
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        texts = read_fields(self.inputs, instances)["text"]
        items = [items_of(text, self._unit, split_marks=self._raw) for text in texts]
        documents = list(map(_document, texts, items))
        rows = self._task.rows(documents, self._tokenizer, self.max_seq_length)
        return Prepared(single_rows(rows), (documents, rows))

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        documents, rows = prepared.state
        answers = self._task.answers(documents, rows, self.joined(outputs))
        pairs = zip(documents, answers, strict=True)
        return [_answer(document.text, given.entities) for document, given in pairs]


def _document(text: str, lines: Sequence[Sequence[Span]]) -> Document:
    words = (tuple(text[start:end] for start, end in items) for items in lines)
    return Document(tuple(Sentence(items, None, (), ()) for items in words), text, lines)


def _answer(text: str, entities: Sequence[TextEntity]) -> Answer:
    columns = {name: [getattr(one, name) for one in entities] for name in TextEntity._fields}
    utf16 = {f"{name}_utf16": utf16_offsets(text, columns[name]) for name in ("start", "end")}
    return {**columns, **utf16, "count": len(entities)}
