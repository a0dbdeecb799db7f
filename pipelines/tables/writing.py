"""Tables of answers: for people (TSV, CSV, the hardest lines of them), and as GLUE has them."""

import csv
import heapq
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from keras_bert_impl.files import open_whole

Item = TypeVar("Item")


def digits(number: float) -> str:
    """A predicted number with the nine digits that tell all of float32 apart.

    Example:
        >>> digits(np.float32(1_000_001)), digits(0.25)
        ('1000001', '0.25')
    """
    return f"{number:.9g}"


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    r"""Writes a table with a header; fields are quoted where they must be, as in CSV.

    The ending of the file, .tsv or .csv, says what separates the columns.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.tsv"
        >>> write_table(path, ["text", "label"], [["Two\nlines", "b"]]).read_text()
        'text\tlabel\n"Two\nlines"\tb\n'
    """
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with open_whole(path) as file:
        writer = table_writer(file, delimiter)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def table_writer(file: IO[str], delimiter: str) -> Any:
    """A writer of rows that quotes fields where they must be."""
    # Lines end in \n, but the writer encloses a field with a carriage return only if its own
    # line end has one.
    return csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")


class _Lines:
    """A file for the writer of a table: the end of each row becomes a line feed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(writable(row.removesuffix("\r\n")) + "\n")


def one_line(text: str) -> str:
    """A text with a blank for all blanks and line ends between two words."""
    return " ".join(text.split())


def writable(text: str) -> str:
    """A text with a question mark for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def hardest(
    items: Iterable[Item], mistake: Callable[[Item], float | None], most: int
) -> list[Item]:
    """The worst mistakes among any number of items, the worst first; keeps `most` in memory.

    Example:
        >>> hardest([3, -5, 4, 1], lambda number: abs(number) if number != 1 else None, 2)
        [-5, 4]
    """
    wrong = ((size, item) for item in items if (size := mistake(item)) is not None)
    return [item for _, item in heapq.nlargest(most, wrong, key=lambda entry: entry[0])]


def write_values(path: Path, values: Iterable[np.ndarray]) -> Path:
    """Writes one line an example, its numbers separated by tabs, without a header."""
    with open_whole(path) as file:
        file.writelines("\t".join(map(str, row.astype(np.float32))) + "\n" for row in values)
    return path


def write_submission(path: Path, answers: Iterable[tuple[str, str]]) -> Path:
    """Writes the file that GLUE's server takes: a header, then index and answer."""
    with open_whole(path) as file:
        file.write("index\tprediction\n")
        file.writelines(f"{identifier}\t{answer}\n" for identifier, answer in answers)
    return path
