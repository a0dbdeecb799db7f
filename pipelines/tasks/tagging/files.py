"""Files with a word (or a character) and its tag on each line, as CoNLL's shared tasks have them.

An empty line ends a sentence, a line `-DOCSTART-` begins a document, comments begin with "#", or
with ";" or "$" where they stand before a sentence. Columns stand between tabs or blanks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.reference import as_name
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.metrics.entities import OUTSIDE
from pipelines.tables.lines import read_lines
from pipelines.tasks.tagging.schemes import spelled_out

DOCUMENT_START = "-DOCSTART-"
_COMMENT = re.compile(r"#+ +\S")
_OTHER_MARKS = (";", "$")
_TAG = re.compile(r"O|[BIESLU]-.+")


class Layout(NamedTuple):
    """How a file's lines are made.

    Attributes:
        word: the number of the column of the word, from 0.
        tag: the number of the column of the tag, from 0; None in a file without tags.
        whole_lines: whether a line is a character, be it a blank: a file of characters alone.
    """

    tabs: bool
    width: int
    word: int
    tag: int | None
    whole_lines: bool = False
    encoding: TextEncoding = UTF_8

    @property
    def separator(self) -> str:
        """The separator of columns that are added."""
        return "\t" if self.tabs or self.whole_lines else " "

    def columns(self, line: str) -> list[str]:
        """The columns of a line."""
        if self.whole_lines:
            return [line]
        return line.split("\t") if self.tabs else [x for x in line.split(" ") if x]

    def is_empty(self, line: str) -> bool:
        r"""Whether a line has nothing in any column.

        Example:
            >>> layout = Layout(tabs=True, width=2, word=0, tag=1)
            >>> layout.is_empty("\t"), layout.is_empty(" \tO")
            (True, False)
        """
        return not line if self.whole_lines else not (line.strip(" ") and line.strip("\t"))

    def is_comment(self, line: str, *, in_sentence: bool = False) -> bool:
        r"""Whether a line is a remark: it begins with "#", ";" or "$" and cannot be a word.

        Example:
            >>> layout = Layout(tabs=True, width=2, word=0, tag=1)
            >>> layout.is_comment("## 7\tA sentence."), layout.is_comment("#rain\tO")
            (True, False)
            >>> layout.is_comment("; It rains."), layout.is_comment("$\tO")
            (True, False)
        """
        if not line.startswith("#" if in_sentence or self.whole_lines else ("#", *_OTHER_MARKS)):
            return False
        columns = self.columns(line)
        if self.whole_lines or len(columns) != self.width:
            return len(line) > 1
        if self.tabs:
            return _COMMENT.match(columns[0]) is not None
        mark_alone = columns[0].strip("#") == "" and self.width > 2 and not in_sentence
        return mark_alone and not _TAG.fullmatch(columns[-1 if self.tag is None else self.tag])


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a file.

    Attributes:
        items: its words, or its characters.
        numbers: the numbers of these lines, from 1.
        document_start: the line by which a document begins in front of it; "" where none does.
        start_counts: whether the official scorer counts that line as a word: it has all columns.
    """

    items: tuple[str, ...]
    tags: tuple[str, ...] | None
    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    document_start: str = ""
    start_counts: bool = False
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Sentences that are read together."""

    sentences: tuple[Sentence, ...]


def find_layout(
    path: Path, word_column: int = 1, tag_column: int = -1, encoding: TextEncoding = UTF_8
) -> Layout:
    r"""Finds out how the lines of a file are made by its first word.

    Args:
        tag_column: the column of the tags, from 1; -1 is the last one and 0 none. A file of one
            column has no tags.
        encoding: how its text stands in bytes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("-DOCSTART- -X- O\n\nParis NNP B-LOC\n")
        >>> find_layout(path)[:4]
        (False, 3, 0, 2)
    """
    for number, line in _numbered_lines(path, encoding):
        if not line.strip(" \t") or line.startswith(("#", *_OTHER_MARKS)) or _is_start(line):
            continue
        tabs = "\t" in line
        width = len(Layout(tabs, 0, 0, None).columns(line))
        has_tags = width > 1 and tag_column != 0
        wanted = {"word_column": word_column} | ({"tag_column": tag_column} if has_tags else {})
        for name, column in wanted.items():
            if column > width or column < -1:
                raise UserError(
                    f"{path}: line {number} has {width} columns, but `{name}` is {column}; name "
                    "another one."
                )
        last = width if tag_column == -1 else tag_column
        tag = last - 1 if has_tags else None
        return Layout(tabs, width, word_column - 1, tag, encoding=encoding)
    raise UserError(f"{path}: has no words; name a file with a word and its tag on each line.")


def read_documents(path: Path, layout: Layout, *, whole: bool) -> Iterator[Document]:
    r"""Reads the documents of a file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("Paris\tB-LOC\n\n# a remark\nIt\tO\nrains\tO\n")
        >>> [d.sentences[0].items for d in read_documents(path, find_layout(path), whole=True)]
        [('Paris',), ('It', 'rains')]
    """
    starts = whole and any(_is_start(line) for _, line in _numbered_lines(path, layout.encoding))
    together = list[Sentence]()
    for sentence in read_sentences(path, layout):
        if together and (sentence.document_start or not starts):
            yield Document(tuple(together))
            together = []
        together.append(sentence)
    if together:
        yield Document(tuple(together))


def read_sentences(path: Path, layout: Layout) -> Iterator[Sentence]:
    """Reads the sentences of a file, whatever documents they are of."""
    own, start = list[tuple[int, str]](), ""
    for number, line in _numbered_lines(path, layout.encoding):
        is_start = _is_start(line)
        if not (is_start or layout.is_empty(line)) and not layout.is_comment(
            line, in_sentence=bool(own)
        ):
            own.append((number, line))
            continue
        if own:
            yield _sentence(path, layout, own, start)
            own, start = [], ""
        start = line if is_start else start
    if own:
        yield _sentence(path, layout, own, start)


def _is_start(line: str) -> bool:
    """Whether a document begins with a line, whatever stands between its columns."""
    return DOCUMENT_START in line and DOCUMENT_START in line.split()


def _sentence(
    path: Path,
    layout: Layout,
    lines: Sequence[tuple[int, str]],
    document_start: str,
) -> Sentence:
    numbers, texts = zip(*lines, strict=True)
    rows = [layout.columns(line) for line in texts]
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != layout.width:
            raise UserError(
                f"{path}: line {number} has {len(row)} columns where others have {layout.width} "
                f"(they stand between {'tabs' if layout.tabs else 'blanks'}); correct the line."
            )
        if layout.tag is not None:
            # A blank behind a tag is no part of it.
            row[layout.tag] = as_name(row[layout.tag].strip(" "))
        empty = [layout.word] if layout.tag is None else [layout.word, layout.tag]
        for column in empty:
            if not row[column]:
                what = "word" if column == layout.word else "tag"
                raise UserError(f"{path}: line {number} has an empty {what}; correct the line.")
    items = tuple(row[layout.word] for row in rows)
    tags = None if layout.tag is None else spelled_out(row[layout.tag] for row in rows)
    counts = len(layout.columns(document_start)) == layout.width and bool(document_start)
    return Sentence(items, tags, texts, numbers, document_start, counts, path)


def _numbered_lines(path: Path, encoding: TextEncoding) -> Iterator[tuple[int, str]]:
    for number, line in read_lines(path, encoding):
        if "\r" in line:
            raise UserError(
                f"{path}: line {number} has a carriage return in it; end every line with a "
                "line feed (tr '\\r' '\\n' does it)."
            )
        yield number, line


def with_tags(sentence: Sentence, tags: Sequence[str], layout: Layout) -> Iterator[str]:
    """The lines of a sentence with a column of tags added, and an empty one behind them.

    Example:
        >>> sentence = Sentence(("It",), ("O",), ("It O",), (3,), "-DOCSTART- O", True)
        >>> list(with_tags(sentence, ["O"], Layout(tabs=False, width=2, word=0, tag=1)))
        ['-DOCSTART- O O', '', 'It O O', '']
    """
    separator = layout.separator
    if sentence.document_start:
        counted = f"{separator}{OUTSIDE}" if sentence.start_counts else ""
        yield from (f"{sentence.document_start}{counted}", "")
    for line, tag in zip(sentence.lines, tags, strict=True):
        # A blank at the line's end would make an empty column of it.
        yield f"{line.rstrip(' ') if separator == ' ' else line}{separator}{tag}"
    yield ""
