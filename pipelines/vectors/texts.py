"""Texts one after the other: the lines of a file, or a column of a table."""

import functools
from collections.abc import Iterator
from typing import Protocol

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.tokenization.reference import as_name
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.columns import check_first_row, choose_text_column
from pipelines.tables.files import TableFile, form_by_name, open_table
from pipelines.tables.lines import read_lines


class Texts(Protocol):
    """Texts that can be read from the beginning as often as wanted; none is kept."""

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    @property
    def column(self) -> str | None:
        """The column that they stand in; None of lines."""


class Lines:
    r"""The lines of a file, one input each, read as often as asked for; none is kept.

    Args:
        encoding: how its text stands in bytes.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_bytes(b"one\r\n\nthree")
        >>> lines = Lines(str(path))
        >>> len(lines), list(lines), list(lines)
        (3, ['one', '', 'three'], ['one', '', 'three'])
    """

    column: str | None = None

    def __init__(self, path: str, encoding: TextEncoding = UTF_8) -> None:
        self._path, self._encoding = path, encoding

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (line for _, line in read_lines(self._path, self._encoding))

    @functools.cached_property
    def _count(self) -> int:
        count = sum(1 for _ in self)
        if not count:
            raise UserError(
                f"{self._path}: holds a byte-order mark and no line; name a file with text."
            )
        return count


class Column:
    """A column of CSV, TSV or JSON."""

    def __init__(self, file: TableFile, column: str) -> None:
        self._file, self.column = file, column

    def __len__(self) -> int:
        return self._count

    @functools.cached_property
    def _count(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        for record in self._file.records():
            value = record.values.get(self.column)
            if value is None:
                raise UserError(
                    f"{self._file.name}: line {record.line} has no {shown(self.column)}; add it or "
                    "remove the line."
                )
            if not isinstance(value, str):
                raise UserError(
                    f"{self._file.name}: line {record.line} has {shown(value)} in the column "
                    f"{shown(self.column)}, which is no text; mend the line."
                )
            yield value


def open_texts(name: str, column: str | None = None, encoding: TextEncoding = UTF_8) -> Texts:
    r"""The texts of a file.

    Args:
        column: the column of the texts, by its name, or by its number from 1 where there is no
            header. None: the lines of a file of text, and of others the column that is plainly
            the one.
        encoding: how its text stands in bytes.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "reviews.csv"
        >>> _ = path.write_text('stars,review\n5,"Rain,\nand wind."\n')
        >>> list(open_texts(str(path)))
        ['Rain,\nand wind.']
    """
    if column is None and form_by_name(name) is None:
        return Lines(name, encoding)
    header = column is None or not column.isdecimal()
    file = open_table(name, header=header, encoding=encoding)
    if column is None:
        return Column(file, choose_text_column(file))
    column = as_name(column)
    if column not in file.columns:
        raise UserError(
            f"{name}: has no column {shown(column)} (its columns: "
            f"{', '.join(map(repr, file.columns))}); name another `text_column`."
        )
    check_first_row(file, [column], remedy="")
    return Column(file, column)
