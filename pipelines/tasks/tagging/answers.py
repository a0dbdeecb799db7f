"""From a model's logits to the tags of all words, and to the entities in the text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.json_files import json_text
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields, utf16_offsets
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.metrics.entities import OUTSIDE, Entity
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.row_form import RowForm, single_rows
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.rows import (
    UNIT_END,
    UNIT_START,
    tag_rows,
    tokenize_characters,
    tokenize_words,
)
from pipelines.tasks.tagging.schemes import CHARACTERS, Scheme
from pipelines.tasks.tagging.texts import Span, characters_of, words_of


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
        first, last = np.searchsorted(self.start, [start, end])
        part = slice(first, last)
        return Units(
            self.start[part] - start, self.end[part] - start, self.label[part], self.score[part]
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
    arrays = (
        rows.tokens[UNIT_START][owned].astype(np.int64),
        rows.tokens[UNIT_END][owned].astype(np.int64),
        labels,
        scores,
    )
    return [Units(*parts) for parts in zip(*(np.split(x, borders) for x in arrays), strict=True)]


def answer(
    document: Document, units: Units, labels: Sequence[str], scheme: Scheme, unit: str
) -> TagAnswer:
    """Gives every word or character of a document its tag, and finds the entities."""
    return answer_text(*laid_out(document, unit), units, labels, scheme, unit)


def answer_text(
    text: str,
    lines: Sequence[Sequence[Span]],
    units: Units,
    labels: Sequence[str],
    scheme: Scheme,
    unit: str,
) -> TagAnswer:
    """Gives every word or character of a text its tag, and finds the entities.

    `lines` say of each sentence where its words or characters are in the text.
    """
    tags, entities, before = list[list[str]](), list[TextEntity](), 0
    for items in lines:
        own = units.between(before, before + len(items))
        find = _of_characters if unit == CHARACTERS else _of_words
        found = find(own, len(items), labels, scheme)
        tags.append(found.tags)
        for entity, score in found.entities:
            start, end = items[entity.start][0], items[entity.end - 1][1]
            entities.append(TextEntity(entity.type, text[start:end], start, end, score))
        before += len(items)
    return TagAnswer(tags, entities)


class _Tagged(NamedTuple):
    """The tags of a sentence's words or characters, and the entities with their scores."""

    tags: list[str]
    entities: list[tuple[Entity, float]]


def _of_words(units: Units, count: int, labels: Sequence[str], scheme: Scheme) -> _Tagged:
    """A word is a unit; one without a token has none, and the tag "O"."""
    scores = np.zeros(count, np.float32)
    scores[units.start] = units.score
    tags = [OUTSIDE] * count
    for word, label in zip(units.start.tolist(), units.label.tolist(), strict=True):
        tags[word] = labels[label]
    return _Tagged(
        tags, [(x, float(scores[x.start : x.end].mean())) for x in scheme.entities(tags)]
    )


def _of_characters(units: Units, count: int, labels: Sequence[str], scheme: Scheme) -> _Tagged:
    """A token is a unit; an entity reaches from its first one's to its last one's characters.

    A character of several tokens, as a syllable that is taken apart, is the first one's: otherwise
    an entity could begin inside another one.
    """
    units = _without_shared_items(units)
    found = list[tuple[Entity, float]]()
    for entity in scheme.entities([labels[number] for number in units.label.tolist()]):
        first, last = entity.start, entity.end - 1
        start, end = int(units.start[first]), int(units.end[last])
        score = float(units.score[first : last + 1].mean())
        found.append((Entity(entity.type, start, end), score))
    return _Tagged(scheme.write([entity for entity, _ in found], count), found)


def _without_shared_items(units: Units) -> Units:
    """Units of which none begins before the one in front ends."""
    start = np.maximum(units.start, np.concatenate([[0], units.end])[:-1])
    own = start < units.end
    return Units(start[own], units.end[own], units.label[own], units.score[own])


def laid_out(document: Document, unit: str) -> tuple[str, list[list[Span]]]:
    """The text of a document, and where the items of each sentence are in it."""
    if document.text is not None:
        return document.text, [list(spans) for spans in document.places]
    lines, begin, gap = list[list[Span]](), 0, 0 if unit == CHARACTERS else 1
    for sentence in document.sentences:
        spans = list[Span]()
        for item in sentence.items:
            spans.append((begin, begin + len(item)))
            begin += len(item) + gap
        lines.append(spans)
        begin += 1 - gap
    return text_of(document, unit), lines


def text_of(document: Document, unit: str) -> str:
    r"""The text of a document: words with single blanks between them, sentences with line breaks.

    Example:
        >>> from pipelines.tasks.tagging.files import Document, Sentence
        >>> first = Sentence(("It", "rains"), None, ("It", "rains"), (1, 2))
        >>> text_of(Document((first, first)), "words")
        'It rains\nIt rains'
    """
    gap = "" if unit == CHARACTERS else " "
    return "\n".join(gap.join(sentence.items) for sentence in document.sentences)


def json_lines(answered: Iterable[tuple[Document, TagAnswer]], unit: str) -> Iterator[str]:
    """A JSON object for each document: its text, its entities, and the line that it begins on."""
    for document, given in answered:
        value: dict[str, Any] = {
            "line": document.sentences[0].numbers[0],
            "text": laid_out(document, unit)[0],
            "entities": [entity._asdict() for entity in given.entities],
        }
        yield json_text(value, ensure_ascii=False) + "\n"


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
        model: KnownModel,
        tags: Sequence[str],
        scheme: Scheme,
        unit: str,
        max_seq_length: int,
        doc_stride: int,
        *,
        raw: bool,
    ) -> None:
        self.signature, self._raw = ("raw_text" if raw else "text"), raw
        self._scheme, self._unit, self._labels = scheme, unit, tags
        self.max_seq_length, self._stride = max_seq_length, doc_stride
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        texts = read_fields(self.inputs, instances)["text"]
        of_characters = self._unit == CHARACTERS
        find = characters_of if of_characters else partial(words_of, split_marks=self._raw)
        items = list(map(find, texts))
        documents = [_document(*one) for one in zip(texts, items, strict=True)]
        if of_characters:
            tokens = tokenize_characters(documents, self._tokenizer, self._labels, self._scheme)
        else:
            tokens = tokenize_words(documents, self._tokenizer, self._labels)
        rows = tag_rows(tokens, self._tokenizer, self.max_seq_length, self._stride)
        return Prepared(single_rows(rows), (texts, items, rows))

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        texts, items, rows = prepared.state
        units = units_of(rows, self.joined(outputs)["logits"])
        how = self._labels, self._scheme, self._unit
        found = [answer_text(*one, *how) for one in zip(texts, items, units, strict=True)]
        return [_answer(text, one.entities) for text, one in zip(texts, found, strict=True)]


def _document(text: str, lines: Sequence[Sequence[Span]]) -> Document:
    words = (tuple(text[start:end] for start, end in items) for items in lines)
    return Document(tuple(Sentence(items, None, (), ()) for items in words))


def _answer(text: str, entities: Sequence[TextEntity]) -> Answer:
    columns = {name: [getattr(one, name) for one in entities] for name in TextEntity._fields}
    utf16 = {f"{name}_utf16": utf16_offsets(text, columns[name]) for name in ("start", "end")}
    return {**columns, **utf16, "count": len(entities)}
