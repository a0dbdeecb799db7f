"""Files of tagged words, sentences and texts: what a file is says a look at its start.

| form | a line |
|---|---|
| columns, as CoNLL's shared tasks have them | a word (or a character) and its tag |
| sentences (Naver) | the words between blanks, a tab, and their tags between blanks |
| texts (doccano, Label Studio) | JSON; see `pipelines.tasks.tagging.texts` |

In columns an empty line ends a sentence, a line `-DOCSTART-` begins a document, comments begin with
"#", or with ";" or "$" where they stand before a sentence. Columns stand between tabs or blanks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.reference import as_name
from pipelines.corpora.encodings import UTF_8, TextEncoding, beginning_of_text
from pipelines.fine_tuning.counts import Counted
from pipelines.metrics.entities import OUTSIDE, Entity
from pipelines.tables.lines import read_lines
from pipelines.tasks.tagging.schemes import CHARACTERS, IOB2, LETTERED, WORDS, spelled_out
from pipelines.tasks.tagging.texts import (
    INSIDE_WORDS,
    OVER_LINES,
    MarkedText,
    Notes,
    Span,
    has_spans,
    items_of,
    read_marked_texts,
)

_DOCUMENT_START = "-DOCSTART-"
_COMMENT = re.compile(r"#+ +\S")
_OTHER_MARKS = (";", "$")
_JSON = re.compile(rb'\{\s*["}]|\[\s*(\{|\]?\s*$)')
_MARKUP = re.compile(rb"<(!doctype|\?xml|html)\b", re.IGNORECASE)
_CELLS = re.compile(r"[^\t]*[,;][^\t]*")
_LOOKED_AT = 200  # lines at a file's start
_UNEQUAL = "sentences with another number of tags than words (left out)"


class TaggedFile(NamedTuple):
    """A file of sentences: what it is, and how its lines are made."""

    path: Path
    tabs: bool
    width: int
    word: int  # the number of the column of the word, from 0
    tag: int | None  # of the column of the tag; None in a file without tags
    whole_lines: bool = False  # a line is a character, be it a blank; of texts: so are the items
    encoding: TextEncoding = UTF_8
    form: Literal["columns", "sentences", "texts"] = "columns"
    bare: bool = False  # a tag is a type, whatever it looks like

    @property
    def labelled(self) -> bool:
        """Whether its words have tags."""
        return self.tag is not None

    def columns(self, line: str) -> list[str]:
        """The columns of a line."""
        if self.whole_lines:
            return [line]
        return line.split("\t") if self.tabs else [x for x in line.split(" ") if x]

    def is_empty(self, line: str) -> bool:
        """Whether a line has nothing in any column."""
        return not line if self.whole_lines else not (line.strip(" ") and line.strip("\t"))

    def is_comment(self, line: str, *, in_sentence: bool = False) -> bool:
        """Whether a line is a remark: it begins with "#", ";" or "$" and cannot be a word."""
        if not line.startswith("#" if in_sentence or self.whole_lines else ("#", *_OTHER_MARKS)):
            return False
        columns = self.columns(line)
        if self.whole_lines or len(columns) != self.width:
            return len(line) > 1 and not in_sentence
        if self.tabs:
            return _COMMENT.match(columns[0]) is not None
        mark_alone = columns[0].strip("#") == "" and self.width > 2 and not in_sentence
        tag = columns[-1 if self.tag is None else self.tag]
        return mark_alone and not (tag == OUTSIDE or LETTERED.fullmatch(tag))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a file."""

    items: tuple[str, ...]  # its words, or its characters
    tags: tuple[str, ...] | None
    lines: tuple[str, ...]
    numbers: tuple[int, ...]  # of these lines, from 1
    document_start: str = ""  # the line by which a document begins in front of it
    start_counts: bool = False  # the official scorer counts that line as a word
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Sentences that are read together, and where their items are in a text of their own."""

    sentences: tuple[Sentence, ...]
    text: str | None = None
    places: Sequence[Sequence[Span]] = ()


def open_tagged(
    path: Path,
    word_column: int = 1,
    tag_column: int = -1,
    encoding: TextEncoding = UTF_8,
    *,
    sentences: bool = False,
) -> TaggedFile:
    """Finds out what a file is by its start, and how its lines are made by its first word.

    The columns are counted from 1; a `tag_column` of -1 is the last one and 0 none. A file of one
    column has no tags. With `sentences` a line without a tab is a sentence to be tagged.
    """
    start = beginning_of_text(str(path), encoding)
    if _JSON.match(start):
        tag = 1 if has_spans(path, encoding) else None
        return TaggedFile(path, True, 1 + (tag or 0), 0, tag, encoding=encoding, form="texts")
    if _MARKUP.match(start):
        raise _foreign(path, "is HTML or XML")
    lines = (pair for pair in _numbered_lines(path, encoding) if _may_be_word(pair[1]))
    looked_at = list(islice(lines, _LOOKED_AT))
    if not looked_at:
        raise _foreign(path, "has no words")
    halves = [line.split("\t") for _, line in looked_at if line.count("\t") == 1]
    fitting = [len(x.split()) == len(y.split()) for x, y in halves if len(y.split()) > 1]
    if fitting and sum(fitting) >= len(fitting) / 2:
        return TaggedFile(path, True, 2, 0, 1, encoding=encoding, form="sentences")
    if sentences and not any("\t" in line for _, line in looked_at):
        return TaggedFile(path, True, 1, 0, None, encoding=encoding, form="sentences")
    if len(looked_at) > 1 and all(_CELLS.fullmatch(line) for _, line in looked_at):
        raise _foreign(path, "is CSV")
    number, line = looked_at[0]
    tabs = "\t" in line
    width = len(TaggedFile(path, tabs, 0, 0, None).columns(line))
    has_tags = width > 1 and tag_column != 0
    tag_column = tag_column if has_tags else 0
    for name, column in (("word_column", word_column), ("tag_column", tag_column)):
        if column > width or column < -1:
            raise UserError(
                f"{path}: line {number} has {width} columns, but `{name}` is {column}; name "
                "another one."
            )
    tag = (width if tag_column == -1 else tag_column) - 1 if has_tags else None
    return TaggedFile(path, tabs, width, word_column - 1, tag, encoding=encoding)


def _may_be_word(line: str) -> bool:
    return not (not line.strip(" \t") or line.startswith(("#", *_OTHER_MARKS)) or _is_start(line))


def _foreign(path: Path, what: str) -> UserError:
    return UserError(
        f"{path}: {what}; name a file with a word and its tag on each line, or an export of "
        "doccano or Label Studio in JSON."
    )


def read_documents(
    file: TaggedFile, *, whole: bool, notes: Notes | None = None
) -> Iterator[Document]:
    """Reads the documents of a file, or each of its sentences; `notes` gets what is odd in it."""
    notes = Notes(Counted) if notes is None else notes
    if file.form == "texts":
        texts = read_marked_texts(file.path, file.encoding, labelled=file.labelled, notes=notes)
        for text in texts:
            yield from _documents_of_text(file, text, whole, notes)
        return
    starts = whole and any(_is_start(line) for _, line in _numbered_lines(file.path, file.encoding))
    together = list[Sentence]()
    read = _sentences_of_columns if file.form == "columns" else _sentences_of_lines
    for sentence in read(file, notes):
        if together and (sentence.document_start or not starts):
            yield Document(tuple(together))
            together = []
        together.append(sentence)
    if together:
        yield Document(tuple(together))


def read_sentences(file: TaggedFile, notes: Notes | None = None) -> Iterator[Sentence]:
    """Reads the sentences of a file, whatever documents they are of."""
    for document in read_documents(file, whole=False, notes=notes):
        yield from document.sentences


def _sentences_of_columns(file: TaggedFile, _: Notes) -> Iterator[Sentence]:
    own, start = list[tuple[int, str]](), ""
    end = (0, "")  # a last sentence may have no empty line behind it
    for number, line in chain(_numbered_lines(file.path, file.encoding), [end]):
        is_start = _is_start(line)
        is_word = not (is_start or file.is_empty(line))
        if is_word and not file.is_comment(line, in_sentence=bool(own)):
            own.append((number, line))
            continue
        if own:
            yield _sentence(file, own, start)
            own, start = [], ""
        start = line if is_start else start


def _sentences_of_lines(file: TaggedFile, notes: Notes) -> Iterator[Sentence]:
    for number, line in _numbered_lines(file.path, file.encoding):
        words, _, tags = line.partition("\t")
        items, given = words.split(), tags.split()
        if len(items) == len(given) or (file.tag is None and not given):
            if items:
                tags_read = given if file.labelled else ()
                yield _made(file.path, number, items, _spelled(file, tags_read) or None)
        else:
            notes[_UNEQUAL].add(f"on line {number}")


def _spelled(file: TaggedFile, tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(as_name, tags)) if file.bare else spelled_out(map(as_name, tags))


def _made(path: Path, number: int, items: Sequence[str], tags: Sequence[str] | None) -> Sentence:
    """A sentence of which the file has no line for each word."""
    cells = [" " if item in "\t\r" else item for item in items]
    rows = (cells,) if tags is None else (cells, tags)
    lines = tuple("\t".join(row) for row in zip(*rows, strict=True))
    given = None if tags is None else tuple(tags)
    return Sentence(tuple(items), given, lines, (number,) * len(items), path=path)


def _documents_of_text(
    file: TaggedFile, found: MarkedText, whole: bool, notes: Notes
) -> Iterator[Document]:
    """A text as a document, or each of its lines."""
    text, where = found.text, f"on line {found.line}"
    lines = items_of(text, CHARACTERS if file.whole_lines else WORDS, split_marks=True)
    sentences, places, left = list[Sentence](), list[tuple[Span, ...]](), list(found.entities or ())
    for items in filter(None, lines):
        own = list[Entity]()
        while left and left[0].start < items[-1][1]:
            kind, start, end = left.pop(0)
            if end > items[-1][1]:
                notes[OVER_LINES].add(where)
                continue
            inside = [n for n, item in enumerate(items) if item[0] < end and start < item[1]]
            if (items[inside[0]][0], items[inside[-1]][1]) != (start, end):
                notes[INSIDE_WORDS].add(where)
            if not own or own[-1].end <= inside[0]:
                own.append(Entity(kind, inside[0], inside[-1] + 1))
        tags = None if found.entities is None else IOB2.write(own, len(items))
        given = [text[start:end] for start, end in items]
        words = [file.encoding.composed(one) for one in given]
        if file.whole_lines:  # some characters are two when they are composed
            words = [y if len(y) == 1 else x for x, y in zip(given, words, strict=True)]
        sentences.append(_made(file.path, found.line, words, tags))
        places.append(tuple(items))
    if whole and sentences:
        yield Document(tuple(sentences), text, tuple(places))
    elif not whole:
        for sentence, own_places in zip(sentences, places, strict=True):
            yield Document((sentence,), text, (own_places,))


def _is_start(line: str) -> bool:
    """Whether a document begins with a line, whatever stands between its columns."""
    return _DOCUMENT_START in line and _DOCUMENT_START in line.split()


def _sentence(file: TaggedFile, lines: Sequence[tuple[int, str]], document_start: str) -> Sentence:
    items, tags = list[str](), list[str]()
    for number, line in lines:
        row = file.columns(line)
        if len(row) != file.width:
            raise UserError(
                f"{file.path}: line {number} has {len(row)} columns where others have {file.width} "
                f"(between {'tabs' if file.tabs else 'blanks'}); correct the line."
            )
        if file.tag is not None:
            row[file.tag] = row[file.tag].strip(" ")  # a blank behind a tag is no part of it
        items.append(row[file.word])
        tags.append(OUTSIDE if file.tag is None else row[file.tag])
        if not (items[-1] and tags[-1]):
            what = "tag" if items[-1] else "word"
            raise UserError(f"{file.path}: line {number} has an empty {what}; correct the line.")
    numbers, texts = zip(*lines, strict=True)
    given = None if file.tag is None else _spelled(file, tags)
    counts = len(file.columns(document_start)) == file.width and bool(document_start)
    return Sentence(tuple(items), given, texts, numbers, document_start, counts, file.path)


def _numbered_lines(path: Path, encoding: TextEncoding) -> Iterator[tuple[int, str]]:
    for number, line in read_lines(path, encoding):
        if "\r" in line:
            raise UserError(
                f"{path}: line {number} has a carriage return in it; end every line with a "
                "line feed (tr '\\r' '\\n' does it)."
            )
        yield number, line


def with_tags(sentence: Sentence, tags: Sequence[str], file: TaggedFile) -> Iterator[str]:
    """The lines of a sentence with a column of tags added, and an empty one behind them.

    Example:
        >>> sentence = Sentence(("It",), ("O",), ("It O",), (3,), "-DOCSTART- O", True)
        >>> list(with_tags(sentence, ["O"], TaggedFile(Path(), False, 2, 0, 1)))
        ['-DOCSTART- O O', '', 'It O O', '']
    """
    separator = "\t" if file.tabs or file.whole_lines else " "
    if sentence.document_start:
        counted = f"{separator}{OUTSIDE}" if sentence.start_counts else ""
        yield from (f"{sentence.document_start}{counted}", "")
    for line, tag in zip(sentence.lines, tags, strict=True):
        # A blank at the line's end would make an empty column of it.
        yield f"{line.rstrip(' ') if separator == ' ' else line}{separator}{tag}"
    yield ""
