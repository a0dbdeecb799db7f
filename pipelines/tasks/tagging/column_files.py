"""Files with a word (or a character) and its tag on each line, as CoNLL's shared tasks have them.

An empty line ends a sentence, a line `-DOCSTART-` begins a document, comments begin with "#".
Columns stand between tabs or blanks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import not_utf8
from pipelines.corpora.unpacking import lines_of, read_line_blocks
from pipelines.metrics.entities import OUTSIDE

DOCUMENT_START = "-DOCSTART-"
_BYTE_ORDER_MARK = "\ufeff"
_COMMENT = re.compile(r"#+ +\S")
_TAG = re.compile(r"O|[BIESLU]-.+")


class Layout(NamedTuple):
    """How a file's lines are made.

    Attributes:
        tabs: whether tabs stand between columns; otherwise blanks.
        width: how many columns a line has.
        word: the number of the column of the word, from 0.
        tag: the number of the column of the tag, from 0; None in a file without tags.
        whole_lines: whether a line is a character, be it a blank: a file of characters alone.
    """

    tabs: bool
    width: int
    word: int
    tag: int | None
    whole_lines: bool = False

    @property
    def separator(self) -> str:
        """What stands between columns that are added."""
        return "\t" if self.tabs or self.whole_lines else " "

    def columns(self, line: str) -> list[str]:
        """The columns of a line."""
        if self.whole_lines:
            return [line]
        return line.split("\t") if self.tabs else [x for x in line.split(" ") if x]

    def is_document_start(self, line: str) -> bool:
        """Whether a document begins with a line, whatever stands between its columns.

        Example:
            >>> layout = Layout(tabs=False, width=2, word=1, tag=0)
            >>> layout.is_document_start("-DOCSTART-"), layout.is_document_start("O -DOCSTART-")
            (True, True)
        """
        if DOCUMENT_START not in line:
            return False
        columns = line.split()
        return DOCUMENT_START in (columns[0], *columns[self.word : self.word + 1])

    def is_empty(self, line: str) -> bool:
        r"""Whether a line has nothing in any column.

        Example:
            >>> layout = Layout(tabs=True, width=2, word=0, tag=1)
            >>> layout.is_empty("\t"), layout.is_empty(" \tO")
            (True, False)
        """
        return not line if self.whole_lines else not (line.strip(" ") and line.strip("\t"))

    def is_comment(self, line: str, *, in_sentence: bool = False) -> bool:
        r"""Whether a line is a remark: it begins with "#" and cannot be a word.

        Args:
            line: the line.
            in_sentence: whether a word stands in front of it. Remarks stand before a sentence, so
                that a line with all columns, which could be either, is a word there.

        Example:
            >>> layout = Layout(tabs=True, width=2, word=0, tag=1)
            >>> layout.is_comment("## 7\tA sentence."), layout.is_comment("#rain\tO")
            (True, False)
        """
        if not line.startswith("#"):
            return False
        if self.whole_lines:
            return len(line) > 1
        columns = self.columns(line)
        if self.tabs:
            mark_alone = len(columns) != self.width and not columns[0].strip("#")
            return len(columns) == 1 or mark_alone or _COMMENT.match(columns[0]) is not None
        if len(columns) != self.width or self.width == 1:
            return len(columns) > 1 or self.width > 1
        if in_sentence or self.width == 2 or columns[0].strip("#"):
            return False
        return not _TAG.fullmatch(columns[-1 if self.tag is None else self.tag])


class Aside(NamedTuple):
    """A line that is no word: empty, a comment, or the beginning of a document.

    Attributes:
        text: the line.
        is_counted: whether the official scorer counts it as a word. It does so with lines at which
            a document begins, where they have columns.
    """

    text: str
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a file.

    Attributes:
        items: its words, or its characters.
        tags: as many tags; None in a file without.
        lines: the lines that they stand on, as they are.
        numbers: the numbers of these lines, from 1.
        before: the lines of the file in front of it that are no words.
        begins_document: whether one of them begins a document.
        path: the file, for messages.
    """

    items: tuple[str, ...]
    tags: tuple[str, ...] | None
    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    before: tuple[Aside, ...] = ()
    begins_document: bool = False
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Sentences that are read together.

    Attributes:
        sentences: one or more.
        after: the lines behind the file's last sentence.
    """

    sentences: tuple[Sentence, ...]
    after: tuple[Aside, ...] = ()


def find_layout(path: Path, word_column: int = 1, tag_column: int = -1) -> Layout:
    r"""Finds out how the lines of a file are made by its first word.

    Args:
        path: the file, plain or packed.
        word_column: the column of the words, from 1.
        tag_column: the column of the tags, from 1; -1 is the last one and 0 none. A file of one
            column has no tags.

    Raises:
        UserError: the file has no word, or no such column.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("-DOCSTART- -X- O\n\nParis NNP B-LOC\n")
        >>> find_layout(path)
        Layout(tabs=False, width=3, word=0, tag=2, whole_lines=False)
    """
    for number, line in _numbered_lines(path):
        if not line.strip(" \t") or line.startswith("#") or DOCUMENT_START in line.split():
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
        return Layout(tabs, width, word_column - 1, last - 1 if has_tags else None)
    raise UserError(f"{path}: has no words; name a file with a word and its tag on each line.")


def read_documents(path: Path, layout: Layout, *, whole: bool) -> Iterator[Document]:
    r"""Reads the documents of a file.

    Args:
        path: the file, plain or packed.
        layout: of its lines.
        whole: give whole documents: sentences from one `-DOCSTART-` to the next one. Otherwise,
            and in a file without such lines, each sentence is a document.

    Raises:
        UserError: a line has another number of columns, an empty word or an empty tag, a carriage
            return in it, or is not UTF-8.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("Paris\tB-LOC\n\n# a remark\nIt\tO\nrains\tO\n")
        >>> [d.sentences[0].items for d in read_documents(path, find_layout(path), whole=True)]
        [('Paris',), ('It', 'rains')]
    """
    together = list[Sentence]()
    for sentence, after in _sentences(path, layout):
        if sentence is None:  # the file's end
            if together:
                yield Document(tuple(together), after)
            return
        joins = whole and together and together[0].begins_document and not sentence.begins_document
        if together and not joins:
            yield Document(tuple(together))
            together = []
        together.append(sentence)


def read_sentences(path: Path, layout: Layout) -> Iterator[Sentence]:
    """Reads the sentences of a file, whatever documents they are of.

    Args:
        path: the file, plain or packed.
        layout: of its lines.

    Raises:
        UserError: as `read_documents`.
    """
    for document in read_documents(path, layout, whole=False):
        yield from document.sentences


def _sentences(path: Path, layout: Layout) -> Iterator[tuple[Sentence | None, tuple[Aside, ...]]]:
    """The sentences of a file; at its end None with the lines that are left."""
    before, own, begins = list[Aside](), list[tuple[int, str]](), False
    for number, line in _numbered_lines(path):
        starts = layout.is_document_start(line)
        aside = starts or layout.is_empty(line) or layout.is_comment(line, in_sentence=bool(own))
        if not aside:
            own.append((number, line))
            continue
        if own:
            yield _sentence(path, layout, own, before, begins), ()
            before, own, begins = [], [], False
        counted = starts and len(layout.columns(line)) == layout.width
        before.append(Aside(line, counted))
        begins = begins or starts
    if own:
        yield _sentence(path, layout, own, before, begins), ()
        before = []
    yield None, tuple(before)


def _sentence(
    path: Path,
    layout: Layout,
    lines: Sequence[tuple[int, str]],
    before: Sequence[Aside],
    begins_document: bool,
) -> Sentence:
    numbers, texts = zip(*lines, strict=True)
    rows = [layout.columns(line) for line in texts]
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != layout.width:
            raise UserError(
                f"{path}: line {number} has {len(row)} columns where others have {layout.width} "
                f"(they stand between {'tabs' if layout.tabs else 'blanks'}); mend the line."
            )
        if layout.tag is not None:
            row[layout.tag] = row[layout.tag].strip(" ")  # a blank behind a tag is no part of it
        empty = [layout.word] if layout.tag is None else [layout.word, layout.tag]
        for column in empty:
            if not row[column]:
                what = "word" if column == layout.word else "tag"
                raise UserError(f"{path}: line {number} has an empty {what}; mend the line.")
    tags = None if layout.tag is None else tuple(row[layout.tag] for row in rows)
    items = tuple(row[layout.word] for row in rows)
    return Sentence(items, tags, texts, numbers, tuple(before), begins_document, path)


def _numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    for block in read_line_blocks(str(path)):
        for number, line in enumerate(lines_of(block), start=block.first_line):
            try:
                text = line.decode("utf-8").rstrip("\r")
            except UnicodeDecodeError as error:
                raise not_utf8(path, f"line {number}") from error
            if "\r" in text:
                raise UserError(
                    f"{path}: line {number} has a carriage return in it; end every line with a "
                    "line feed (tr '\\r' '\\n' does it)."
                )
            yield number, text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text


def with_tags(sentence: Sentence, tags: Sequence[str], separator: str) -> Iterator[str]:
    """The lines of a sentence with a column of tags added, and the lines in front of them.

    Example:
        >>> start = Aside("-DOCSTART- O", is_counted=True)
        >>> sentence = Sentence(("It",), ("O",), ("It O",), (3,), (start, Aside("")))
        >>> list(with_tags(sentence, ["O"], " "))
        ['-DOCSTART- O O', '', 'It O O']
    """
    yield from without_words(sentence.before, separator)
    for line, tag in zip(sentence.lines, tags, strict=True):
        # A blank at the line's end would make an empty column of it.
        yield f"{line.rstrip(' ') if separator == ' ' else line}{separator}{tag}"


def without_words(lines: Sequence[Aside], separator: str) -> Iterator[str]:
    """Lines between sentences; those that count as words get the tag "O"."""
    for line in lines:
        yield f"{line.text}{separator}{OUTSIDE}" if line.is_counted else line.text
