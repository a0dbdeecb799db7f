r"""Texts as people write them: their words, and the entities that annotation tools mark in them.

| form | a text | its spans |
|---|---|---|
| doccano (JSON lines) | `text`, once `data` | `label`, `labels` or `entities`, once `annotations` |
| Label Studio (JSON) | `data.text` | `annotations[].result[].value` |
| Label Studio (JSON-MIN) | `text` | a list under the name of its tag, mostly `label` |

A span is `[start, end, type]` or an object; it is held against its text. What cannot be learned is
counted with the first line of it, and left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, cut, reading
from keras_bert_impl.tokenization.reference import as_name
from keras_bert_impl.tokenization.text_settings import AS_IS
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.counts import Counted
from pipelines.metrics.entities import Entity
from pipelines.tables.files import open_table
from pipelines.tasks.tagging.schemes import CHARACTERS, WORDS

Span = tuple[int, int]
Notes = defaultdict[str, Counted]
"""What is odd in a file: what it is, and how often."""

BLANKS = " \t\r\n"
RARE_BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
LINE_BREAK = "\n"
MARKS = ".,;:!?()[]{}<>\"'`´“”„‟‘’‚‛«»‹›…·¡¿、。，．！？：；（）「」『』《》〈〉【】"

_WORD = re.compile(f"[^{re.escape(BLANKS)}]+")
_WORD_OF_RAW_TEXT = re.compile(f"[^{re.escape(BLANKS + RARE_BLANKS)}]+")
_CHARACTER = re.compile(".", re.DOTALL)

_LISTS = ("label", "labels", "entities", "annotations")
_NO_TEXTS = (*_LISTS, "id", "data.id", "annotator", "created_at", "updated_at", "file_upload")
_MOST_INSIDE = 0.1  # of the spans may begin or end inside a word, where words are tagged
INSIDE_WORDS = "spans that begin or end inside a word (the whole word is taken)"
OVER_LINES = "spans over the end of a line (left out)"
_OVERLAPS = "spans that overlap another one or are inside it (left out)"
_MISFITS = "spans outside of their text, or beside the text that they should be (left out)"
_EMPTY = "texts without a span (read as texts without an entity)"
_CANCELLED = "texts that are cancelled or not annotated (left out)"
_ANNOTATORS = "texts with several annotations (the first one is read)"


def items_of(text: str, unit: str, *, split_marks: bool = False) -> list[list[Span]]:
    r"""Finds the words (or characters) of each line: where each begins, and where it has ended.

    With `split_marks` marks at the ends of words are words of their own.

    Example:
        >>> items_of("In Paris.\nYes", WORDS), items_of("ab\nc", CHARACTERS)
        ([[(0, 2), (3, 9)], [(10, 13)]], [[(0, 1), (1, 2)], [(3, 4)]])
        >>> items_of("(Paris).", WORDS, split_marks=True)
        [[(0, 1), (1, 6), (6, 7), (7, 8)]]
    """
    of_words = _WORD_OF_RAW_TEXT if split_marks else _WORD
    pattern, begin, lines = _CHARACTER if unit == CHARACTERS else of_words, 0, []
    for line in text.split(LINE_BREAK):
        spans = [(begin + one.start(), begin + one.end()) for one in pattern.finditer(line)]
        if pattern is _WORD_OF_RAW_TEXT:
            spans = [part for span in spans for part in _without_marks(text, *span)]
        lines.append(spans)
        begin += len(line) + 1
    return lines


def _without_marks(text: str, start: int, end: int) -> list[Span]:
    first = end - len(text[start:end].lstrip(MARKS))
    last = start + len(text[start:end].rstrip(MARKS))
    if first == end:  # nothing but marks
        return [(start, end)]
    marks = [
        [(mark, mark + 1) for mark in some] for some in (range(start, first), range(last, end))
    ]
    return [*marks[0], (first, last), *marks[1]]


class MarkedText(NamedTuple):
    """A text of a file, the line on which its record begins, and the entities marked in it."""

    line: int
    text: str
    entities: tuple[Entity, ...] | None  # in their order; None where nothing is annotated


def read_marked_texts(
    path: Path, encoding: TextEncoding, *, labelled: bool = True, notes: Notes | None = None
) -> Iterator[MarkedText]:
    """Reads what doccano or Label Studio exported, whatever `labelled` says without entities."""
    notes, seen = Notes(Counted) if notes is None else notes, set[Any]()
    # Offsets are those of the text as it is in the file.
    file = open_table(str(path), encoding=replace(encoding, unicode_form=AS_IS))
    with reading(path, "an export of doccano or Label Studio"):
        for line, values in file.records():
            text = _text_of(path, line, values)
            if not labelled:
                yield MarkedText(line, text, None)
                continue
            where, spans = f"on line {line}", _spans_of(path, line, values, notes)
            name = values.get("id") if "annotation_id" in values else None
            if spans is None or name in seen:
                notes[_CANCELLED if spans is None else _ANNOTATORS].add(where)
                continue
            seen |= {name} - {None}
            if not spans:
                notes[_EMPTY].add(where)
            yield MarkedText(line, text, tuple(_entities(text, spans, notes, where)))


def has_spans(path: Path, encoding: TextEncoding) -> bool:
    """Whether any text of a file is annotated."""
    notes = Notes(Counted)
    read = read_marked_texts(path, encoding, notes=notes)
    return any(one.entities or _MISFITS in notes for one in read)


def cuts_words(path: Path, encoding: TextEncoding) -> bool:
    """Whether many entities are parts of words, as in languages without blanks."""
    count = inside = 0
    for one in read_marked_texts(path, encoding):
        lines = items_of(one.text, WORDS, split_marks=True)
        borders = {border for line in lines for span in line for border in span}
        count += len(one.entities or ())
        inside += sum(not {x.start, x.end} <= borders for x in one.entities or ())
    return inside > _MOST_INSIDE * count


def _text_of(path: Path, line: int, values: Mapping[str, Any]) -> str:
    known = (values.get(name) for name in ("text", "data", "data.text"))
    found = [one for one in known if isinstance(one, str)][:1]
    of_studio = "annotation_id" in values or any(name.startswith("data.") for name in values)
    if not found and (of_studio or any(map(_are_spans, values.values()))):
        others = (one for name, one in values.items() if name not in _NO_TEXTS)
        found = [one for one in others if isinstance(one, str)]
    if len(found) != 1:
        raise UserError(
            f"{path}: is JSON of {cut(', '.join(values), 100)}, and line {line} has no 'text'; "
            "name columns of words and tags, or an export of doccano or Label Studio."
        )
    return found[0]


def _spans_of(
    path: Path, line: int, values: Mapping[str, Any], notes: Notes
) -> Sequence[Any] | None:
    """The spans of a text as they are in its file; None where it was not annotated."""
    given = values.get("annotations", values.get("completions"))
    if any(name.startswith("data.") for name in values):  # of Label Studio
        done = [one for one in given or () if not one.get("was_cancelled")]
        if len(done) > 1:
            notes[_ANNOTATORS].add(f"on line {line}")
        results = done[0].get("result") or () if done else ()
        labels = [one for one in results if str(one.get("type", "labels")).endswith("labels")]
        return labels if done else None
    lists = {name: one for name, one in values.items() if isinstance(one, list)}
    fitting = (one for name, one in lists.items() if name in _LISTS or _are_spans(one))
    found = next(fitting, [])
    other = any(isinstance(values.get(name), str | int) for name in _LISTS)
    if not all(map(_is_span, found)) or (other and not lists):
        raise UserError(
            f"{path}: is JSON of {cut(', '.join(values), 100)}, and line {line} has no list of "
            "spans with start, end and type; name an export of doccano or Label Studio."
        )
    users = dict.fromkeys(one.get("user") for one in found if isinstance(one, dict))
    if len(users) > 1:
        notes[_ANNOTATORS].add(f"on line {line}")
        found = [one for one in found if one.get("user") == next(iter(users))]
    return found


def _are_spans(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) == 3 and isinstance(value[0], int)
    return isinstance(value, dict) and bool({"start", "start_offset"} & value.keys())


def _entities(text: str, spans: Sequence[Any], notes: Notes, where: str) -> Iterator[Entity]:
    found = list[Entity]()
    for span in spans:
        start, end, kinds, own = _parts(span)
        if own and (end > len(text) or text[start:end] != own):  # JavaScript: halves of emoji
            start, end = (_without_pairs(text, x) for x in (start, end))
        fits = 0 <= start < end <= len(text) and text[start:end].strip()
        if not fits or (own and text[start:end] != own):
            notes[_MISFITS].add(where)
            continue
        end = start + len(text[start:end].rstrip())
        start = end - len(text[start:end].lstrip())
        found += [Entity(as_name(str(kind)), start, end) for kind in kinds]
    end = 0
    for entity in sorted(dict.fromkeys(found), key=lambda one: (one.start, -one.end)):
        if entity.start < end:
            notes[_OVERLAPS].add(where)
            continue
        end = entity.end
        yield entity


def _parts(span: Any) -> tuple[int, int, Sequence[Any], str | None]:
    """Start, end, types and, where it is said, the text of a span; (0, 0, ...) of none."""
    if isinstance(span, list):
        span = dict(zip(("start", "end", "label"), span, strict=True))
    values = {name.removeprefix("value.").removesuffix("_offset"): x for name, x in span.items()}
    start, end, own = (values.get(name) for name in ("start", "end", "text"))
    kinds = values.get("labels", values.get("label"))
    kinds = kinds if isinstance(kinds, list) else [] if kinds is None else [kinds]
    if type(start) is not int or type(end) is not int or not kinds:
        start = end = 0
    return start, end, kinds, own.replace("\\n", "\n") if isinstance(own, str) else None


def _without_pairs(text: str, position: int) -> int:
    """The position in characters of one in UTF-16.

    Example:
        >>> _without_pairs("😀 Ada", 3)
        2
    """
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * max(position, 0)]
    return len(units.decode("utf-16-le", "ignore"))
