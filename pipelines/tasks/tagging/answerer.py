"""Texts asked of a model of tags: the entities in them, with their positions."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.records.rows import Rows
from pipelines.tasks.row_form import RowForm, single_rows
from pipelines.tasks.tagging.answers import TextEntity, Units, found_in, units_of
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.rows import tag_rows, tokenize_characters, tokenize_words
from pipelines.tasks.tagging.statistics import CHARACTERS
from pipelines.tasks.tagging.words import Span, words_of

if TYPE_CHECKING:
    from pipelines.tasks.tagging.task import TaggingTask


class _Asked(NamedTuple):
    """What undoes the rows of some texts.

    Attributes:
        items: of each text and each of its lines, where the words or characters stand.
    """

    texts: Sequence[str]
    items: Sequence[Sequence[Sequence[Span]]]
    rows: Rows


_OUTPUTS = {
    "type": "the type of each entity",
    "text": "its characters",
    "start": "the position of its first character",
    "end": "the position after its last one",
    "score": "the mean probability of its words' tags",
    "count": "how many there are",
}


class EntityForm(RowForm):
    """A text to its entities."""

    kind = "entities"
    inputs = (Input("text", about="a text"),)
    outputs = _OUTPUTS
    model_outputs = token_outputs = ("logits",)

    def __init__(
        self, task: "TaggingTask", model: KnownModel, max_seq_length: int, *, raw: bool
    ) -> None:
        self.signature, self._raw = ("raw_text" if raw else "text"), raw
        self._task, self._labels, self._length = task, model.labels, max_seq_length
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        texts = read_fields(self.inputs, instances)["text"]
        if not texts:
            return Prepared([])
        items = [self._items(text) for text in texts]
        documents = [_document(*one) for one in zip(texts, items, strict=True)]
        if self._task.unit == CHARACTERS:
            tokens = tokenize_characters(
                documents, self._tokenizer, self._labels, self._task.scheme
            )
        else:
            tokens = tokenize_words(documents, self._tokenizer, self._labels, tell=False)
        rows = tag_rows(tokens, self._tokenizer, self._length, self._task.doc_stride)
        return Prepared(single_rows(rows), _Asked(texts, items, rows))

    def _items(self, text: str) -> list[list[Span]]:
        if self._task.unit != CHARACTERS:
            return words_of(text, split_marks=self._raw)
        lines, begin = [], 0
        for line in text.split("\n"):
            lines.append([(begin + number, begin + number + 1) for number in range(len(line))])
            begin += len(line) + 1
        return lines

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """See `Answerer.finish`."""
        if not outputs:
            return []
        asked: _Asked = prepared.state
        units = units_of(asked.rows, self.joined(outputs)["logits"])
        return [
            _answer([*self._entities(*one)])
            for one in zip(asked.texts, asked.items, units, strict=True)
        ]

    def _entities(
        self, text: str, lines: Sequence[Sequence[Span]], units: Units
    ) -> Iterator[TextEntity]:
        before, task = 0, self._task
        for items in lines:
            own = units.between(before, before + len(items))
            found = found_in(own, len(items), self._labels, task.scheme, task.unit)
            for entity, score in found.entities:
                start, end = items[entity.start][0], items[entity.end - 1][1]
                yield TextEntity(entity.type, text[start:end], start, end, score)
            before += len(items)


def _document(text: str, lines: Sequence[Sequence[Span]]) -> Document:
    words = (tuple(text[start:end] for start, end in items) for items in lines)
    return Document(tuple(Sentence(items, None, (), ()) for items in words))


def _answer(entities: Sequence[TextEntity]) -> Answer:
    columns = {name: [getattr(one, name) for one in entities] for name in TextEntity._fields}
    return {**columns, "count": len(entities)}
