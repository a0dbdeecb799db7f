"""Texts one after the other: the lines of a file, or a column of a table."""

from collections.abc import Iterator
from typing import Protocol

from keras_bert_impl.errors import UserError
from pipelines.corpora.text_lines import TextLines
from pipelines.tasks.labelled_files import LabelledFile, open_labelled
from pipelines.vectors.config import TextsConfig


class Texts(Protocol):
    """Texts that can be read from the beginning as often as wanted; none is kept."""

    def __iter__(self) -> Iterator[str]: ...


class Column:
    """A column of CSV, TSV or JSON."""

    def __init__(self, file: LabelledFile, column: str) -> None:
        self._file, self._column = file, column

    def __iter__(self) -> Iterator[str]:
        for record in self._file.records():
            value = record.values.get(self._column)
            if not isinstance(value, str):
                raise UserError(
                    f"{self._file.name}: line {record.line} has {value!r} in the column "
                    f"{self._column!r}, which is no text; mend the line."
                )
            yield value


def open_texts(config: TextsConfig) -> Texts:
    r"""The texts that are asked for.

    Raises:
        UserError: the file is missing or of another form, or has no such column.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "reviews.csv"
        >>> _ = path.write_text('stars,review\n5,"Rain,\nand wind."\n')
        >>> list(open_texts(TextsConfig(input_file=str(path), text_column="review")))
        ['Rain,\nand wind.']
    """
    name, column = config.input_file, config.text_column
    if column is None:
        return TextLines(name)
    file = open_labelled(name, header=not column.isdecimal())
    if column not in file.columns:
        raise UserError(
            f"{name}: has no column {column!r} (its columns: "
            f"{', '.join(map(repr, file.columns))}); name another `text_column`."
        )
    return Column(file, column)
