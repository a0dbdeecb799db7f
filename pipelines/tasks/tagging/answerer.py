"""Texts asked of a model of tags: the entities in them, with their positions."""

import re
from collections.abc import Sequence

from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields, utf16_offsets
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.tasks.row_form import RowForm, single_rows
from pipelines.tasks.tagging.answers import Span, TextEntity, answer_text, units_of
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.rows import tag_rows, tokenize_characters, tokenize_words
from pipelines.tasks.tagging.schemes import Scheme
from pipelines.tasks.tagging.statistics import CHARACTERS

BLANKS = " \t\r\n"
RARE_BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
LINE_BREAK = "\n"
MARKS = ".,;:!?()[]{}<>\"'`´“”„‟‘’‚‛«»‹›…·¡¿、。，．！？：；（）「」『』《》〈〉【】"

_WORDS = re.compile(f"[^{re.escape(BLANKS)}]+")
_WORDS_OF_RAW_TEXT = re.compile(f"[^{re.escape(BLANKS + RARE_BLANKS)}]+")
_MARKED = re.compile(f"([{re.escape(MARKS)}]*)(.*?)([{re.escape(MARKS)}]*)", re.DOTALL)


def words_of(text: str, *, split_marks: bool = False) -> list[list[Span]]:
    r"""Finds the words of each line of a text.

    Returns:
        Of each line the position in the text of each word's first character, and the one after
        its last.

    Example:
        >>> words_of("In Paris.\nYes")
        [[(0, 2), (3, 9)], [(10, 13)]]
        >>> words_of("(Paris).", split_marks=True)
        [[(0, 1), (1, 6), (6, 7), (7, 8)]]
    """
    pattern, begin, lines = _WORDS_OF_RAW_TEXT if split_marks else _WORDS, 0, []
    for line in text.split(LINE_BREAK):
        spans = [(begin + one.start(), begin + one.end()) for one in pattern.finditer(line)]
        if split_marks:
            spans = [part for span in spans for part in _without_marks(text, span)]
        lines.append(spans)
        begin += len(line) + 1
    return lines


def _without_marks(text: str, span: Span) -> list[Span]:
    found = _MARKED.fullmatch(text, *span)
    if found is None or found.start(2) == found.end(2):  # nothing but marks
        return [span]
    (start, end), core = span, found.span(2)
    return [
        *((mark, mark + 1) for mark in range(start, core[0])),
        core,
        *((mark, mark + 1) for mark in range(core[1], end)),
    ]


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
        scheme: Scheme,
        unit: str,
        max_seq_length: int,
        doc_stride: int,
        *,
        raw: bool,
    ) -> None:
        self.signature, self._raw = ("raw_text" if raw else "text"), raw
        self._scheme, self._unit, self._labels = scheme, unit, model.labels
        self.max_seq_length, self._stride = max_seq_length, doc_stride
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        texts = read_fields(self.inputs, instances)["text"]
        if not texts:
            return Prepared([])
        items = [self._items(text) for text in texts]
        documents = [_document(*one) for one in zip(texts, items, strict=True)]
        if self._unit == CHARACTERS:
            tokens = tokenize_characters(documents, self._tokenizer, self._labels, self._scheme)
        else:
            tokens = tokenize_words(documents, self._tokenizer, self._labels)
        rows = tag_rows(tokens, self._tokenizer, self.max_seq_length, self._stride)
        return Prepared(single_rows(rows), (texts, items, rows))

    def _items(self, text: str) -> list[list[Span]]:
        if self._unit != CHARACTERS:
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
        texts, items, rows = prepared.state
        units = units_of(rows, self.joined(outputs)["logits"])
        how = self._labels, self._scheme, self._unit
        found = [answer_text(*one, *how) for one in zip(texts, items, units, strict=True)]
        return [_answer(*one) for one in zip(texts, (one.entities for one in found), strict=True)]


def _document(text: str, lines: Sequence[Sequence[Span]]) -> Document:
    words = (tuple(text[start:end] for start, end in items) for items in lines)
    return Document(tuple(Sentence(items, None, (), ()) for items in words))


def _answer(text: str, entities: Sequence[TextEntity]) -> Answer:
    columns = {name: [getattr(one, name) for one in entities] for name in TextEntity._fields}
    utf16 = {f"{name}_utf16": utf16_offsets(text, columns[name]) for name in ("start", "end")}
    return {**columns, **utf16, "count": len(entities)}
