"""Texts one after the other: the lines of a file, or a column of a table."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.reference import as_name
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.columns import check_columns, check_first_row, choose_text_column, text_of
from pipelines.tables.files import TableFile, form_by_name, open_table
from pipelines.tables.lines import read_lines


@dataclass(frozen=True)
class Texts:
    """Texts that can be read from the beginning as often as wanted; `column` is None of lines."""

    read: Callable[[], Iterator[str]]
    column: str | None = None

    def __iter__(self) -> Iterator[str]:
        return self.read()


def open_texts(name: str, column: str | None = None, encoding: TextEncoding = UTF_8) -> Texts:
    """The texts of a file.

    `column` is that of the texts, by its name, or by its number from 1 where there is no header.
    None: the lines of a file of text, and of others the column that is plainly the one.
    """
    if column is None and form_by_name(name) is None:
        return Texts(lambda: (line for _, line in read_lines(name, encoding)))
    header = column is None or not column.isdecimal()
    file = open_table(name, header=header, encoding=encoding)
    if column is None:
        column = choose_text_column(file)
    else:
        column = as_name(column)
        check_columns(file, [column])
        check_first_row(file, [column], remedy="")
    return Texts(functools.partial(_column, file, column), column)


def count_texts(texts: Iterable[str], name: str) -> int:
    """How many texts a file has; a `UserError` of none."""
    if not (count := sum(1 for _ in texts)):
        raise UserError(f"{name}: has no text; name a file with some.")
    return count


def _column(file: TableFile, column: str) -> Iterator[str]:
    return (text_of(file, record, column) for record in file.records())
