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
from pipelines.tasks.tagging.schemes import in_short, is_short, spelled_out

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
        short_tags: whether tags are B_TYPE and I, which are read as B-TYPE and I-TYPE.
    """

    tabs: bool
    width: int
    word: int
    tag: int | None
    whole_lines: bool = False
    short_tags: bool = False
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
        r"""Whether a line is a remark: it begins with "#", ";" or "$" and cannot be a word.

        Example:
            >>> layout = Layout(tabs=True, width=2, word=0, tag=1)
            >>> layout.is_comment("## 7\tA sentence."), layout.is_comment("#rain\tO")
            (True, False)
            >>> layout.is_comment("; It rains."), layout.is_comment("$\tO")
            (True, False)
        """
        if line.startswith(_OTHER_MARKS):
            # In a sentence it is a word, if one that lacks a column.
            alone = self.width == 1 or len(self.columns(line)) == self.width
            return not (in_sentence or alone or self.whole_lines)
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
        numbers: the numbers of these lines, from 1.
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
        after: the lines behind the file's last sentence.
    """

    sentences: tuple[Sentence, ...]
    after: tuple[Aside, ...] = ()


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
    for number, line in _words_first(path, encoding):
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


def _words_first(path: Path, encoding: TextEncoding) -> Iterator[tuple[int, str]]:
    """The lines that may be words; behind them the first one that is rather a remark."""
    doubtful = list[tuple[int, str]]()
    for number, line in _numbered_lines(path, encoding):
        if not line.strip(" \t") or line.startswith("#") or DOCUMENT_START in line.split():
            continue
        if line.startswith(_OTHER_MARKS):
            doubtful = doubtful or [(number, line)]
        else:
            yield number, line
    yield from doubtful


def find_short_tags(path: Path, layout: Layout, *, expected: bool = False) -> Layout:
    r"""The layout with `short_tags` as the file is: of B_TYPE, I and O alone, with both of B and I.

    Args:
        expected: whether they are short in the file that the model was trained on; then it is
            enough that no tag speaks against it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("; Ada Byron\nAda\tB_PS\nByron\tI\n")
        >>> find_short_tags(path, find_layout(path)).short_tags
        True
    """
    kinds = set[str]()
    for sentence in read_sentences(path, layout):
        if not all(map(is_short, sentence.tags or ())):
            return layout
        kinds.update(tag[0] for tag in sentence.tags or ())
    return layout._replace(short_tags=expected or {"B", "I"} <= kinds)


def read_documents(path: Path, layout: Layout, *, whole: bool) -> Iterator[Document]:
    r"""Reads the documents of a file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.txt"
        >>> _ = path.write_text("Paris\tB-LOC\n\n# a remark\nIt\tO\nrains\tO\n")
        >>> [d.sentences[0].items for d in read_documents(path, find_layout(path), whole=True)]
        [('Paris',), ('It', 'rains')]
    """
    together, joined = list[Sentence](), False
    for sentence, after in _sentences(path, layout):
        if sentence is None:  # the file's end
            if together:
                yield Document(tuple(together), after)
            return
        if not together:  # the first one
            joined = whole and (sentence.begins_document or _has_starts(path, layout))
        elif sentence.begins_document or not joined:
            yield Document(tuple(together))
            together = []
        together.append(sentence)


def read_sentences(path: Path, layout: Layout) -> Iterator[Sentence]:
    """Reads the sentences of a file, whatever documents they are of."""
    for document in read_documents(path, layout, whole=False):
        yield from document.sentences


def _has_starts(path: Path, layout: Layout) -> bool:
    """Whether a document begins somewhere in a file."""
    return any(layout.is_document_start(line) for _, line in _numbered_lines(path, layout.encoding))


def _sentences(path: Path, layout: Layout) -> Iterator[tuple[Sentence | None, tuple[Aside, ...]]]:
    """The sentences of a file; at its end None with the lines that are left."""
    before, own, begins = list[Aside](), list[tuple[int, str]](), False
    for number, line in _numbered_lines(path, layout.encoding):
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
    tags = None if layout.tag is None else [row[layout.tag] for row in rows]
    if tags is not None and layout.short_tags:
        tags = spelled_out(tags)
        for number, tag in zip(numbers, tags, strict=True):
            if tag == "I":
                raise UserError(
                    f"{path}: line {number}: the tag 'I' starts nowhere: there is no B_TYPE in "
                    "front of it; correct the line."
                )
    items = tuple(row[layout.word] for row in rows)
    return Sentence(
        items,
        None if tags is None else tuple(tags),
        texts,
        numbers,
        tuple(before),
        begins_document,
        path,
    )


def _numbered_lines(path: Path, encoding: TextEncoding) -> Iterator[tuple[int, str]]:
    for number, line in read_lines(path, encoding):
        if "\r" in line:
            raise UserError(
                f"{path}: line {number} has a carriage return in it; end every line with a "
                "line feed (tr '\\r' '\\n' does it)."
            )
        yield number, line


def with_tags(sentence: Sentence, tags: Sequence[str], layout: Layout) -> Iterator[str]:
    """The lines of a sentence with a column of tags added, and the lines in front of them.

    Example:
        >>> start = Aside("-DOCSTART- O", is_counted=True)
        >>> sentence = Sentence(("It",), ("O",), ("It O",), (3,), (start, Aside("")))
        >>> list(with_tags(sentence, ["O"], Layout(tabs=False, width=2, word=0, tag=1)))
        ['-DOCSTART- O O', '', 'It O O']
    """
    separator = layout.separator
    tags = in_short(tags) if layout.short_tags else tags
    yield from without_words(sentence.before, separator)
    for line, tag in zip(sentence.lines, tags, strict=True):
        # A blank at the line's end would make an empty column of it.
        yield f"{line.rstrip(' ') if separator == ' ' else line}{separator}{tag}"


def without_words(lines: Sequence[Aside], separator: str) -> Iterator[str]:
    """Lines between sentences; those that count as words get the tag "O"."""
    for line in lines:
        yield f"{line.text}{separator}{OUTSIDE}" if line.is_counted else line.text
