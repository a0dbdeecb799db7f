"""Tables of answers for people: TSV or CSV, whole or the hardest lines of them."""

import csv
import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from keras_bert_impl.files import open_whole

FORMATS = {"tsv": "\t", "csv": ","}


Item = TypeVar("Item")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    r"""Writes a table with a header; fields are quoted where they must be, as in CSV.

    Args:
        path: the file; its ending, .tsv or .csv, says what separates the columns.
        header: the columns' names.
        rows: the cells of each row; written while they are made.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.tsv"
        >>> write_table(path, ["text", "label"], [["Two\nlines", "b"]]).read_text()
        'text\tlabel\n"Two\nlines"\tb\n'
    """
    delimiter = FORMATS[path.suffix.removeprefix(".")]
    with open_whole(path) as file:
        # Lines end in \n, but the writer encloses a field with a carriage return only if its own
        # line end has one.
        writer = csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


class _Lines:
    """What the writer of a table writes into: each row's own end becomes a line feed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(row.removesuffix("\r\n") + "\n")


def hardest(
    items: Iterable[Item], mistake: Callable[[Item], float | None], most: int
) -> list[Item]:
    """The worst mistakes among any number of items, the worst first; keeps `most` in memory.

    Args:
        items: what to choose from.
        mistake: how large an item's mistake is; None where it is none.
        most: how many to give at most.

    Example:
        >>> hardest([3, -5, 4, 1], lambda number: abs(number) if number != 1 else None, 2)
        [-5, 4]
    """
    heap: list[tuple[float, int, Item]] = []
    count = itertools.count()  # of equal mistakes the first one comes first
    for item in items:
        size = mistake(item)
        if size is None:
            continue
        entry = (size, -next(count), item)
        if len(heap) < most:
            heapq.heappush(heap, entry)
        elif entry > heap[0]:
            heapq.heapreplace(heap, entry)
    return [item for *_, item in sorted(heap, key=lambda entry: entry[:2], reverse=True)]
