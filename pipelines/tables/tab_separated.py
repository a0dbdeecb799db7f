"""Tab-separated files as GLUE has them: examples in, a model's answers out."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole, text_lines

_LOGGER = logging.getLogger(__name__)


class Line(NamedTuple):
    """One line of a file.

    Attributes:
        number: its number in the file, from 1.
        values: column name to text.
    """

    number: int
    values: dict[str, str]


def read_table(
    path: Path,
    needed: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    skip_broken_rows: bool = False,
) -> Iterator[Line]:
    r"""Reads a tab-separated file line by line; a quotation mark is a character like any other.

    Args:
        path: the file, UTF-8 (a byte-order mark is dropped), lines ending in `\n` or `\r\n`. Of
            several columns empty lines are left out; of one column they are empty texts.
        needed: the columns that must be there.
        columns: the columns' names where the file has no header.
        skip_broken_rows: leave out, and count in the log, rows with another number of columns.

    Raises:
        UserError: missing or empty file, not UTF-8, no such column, no rows, or a row with
            another number of columns.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "dev.tsv"
        >>> _ = path.write_text('sentence\tlabel\na "fine" film\t1\n')
        >>> list(read_table(path, ["sentence", "label"]))
        [Line(number=2, values={'sentence': 'a "fine" film', 'label': '1'})]
    """
    lines = _lines(path)
    if columns is None:
        _, header = next(lines, (0, None))
        if header is None:
            raise UserError(f"{path}: has no rows; name a file with a header and examples.")
        columns = header.split("\t")
        _check_header(path, columns, needed)
    count = broken = 0
    for number, line in lines:
        if not line and len(columns) > 1:
            continue
        cells = line.split("\t")
        if len(cells) == len(columns):
            count += 1
            yield Line(number, dict(zip(columns, cells, strict=True)))
        elif skip_broken_rows:
            broken += 1
        else:
            raise UserError(
                f"{path}: line {number} has {len(cells)} tab-separated columns instead of "
                f"{len(columns)} ({', '.join(columns)}); mend or remove the line."
            )
    if broken:
        _LOGGER.warning("%s: left out %d rows with a wrong number of columns.", path, broken)
    if not count:
        raise UserError(f"{path}: has no rows; name a file with examples.")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with their numbers from 1; empty ones before the first and after the last not."""
    seen, empty = False, list[int]()
    for number, line in enumerate(text_lines(path), start=1):
        if not line:
            empty += [number] if seen else []
            continue
        # Between others, in a file of one column, an empty line is an empty text.
        yield from ((earlier, "") for earlier in empty)
        empty.clear()
        seen = True
        yield number, line


def _check_header(path: Path, columns: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UserError(
            f"{path}: line 1, the header, has no column {' and no '.join(map(repr, missing))} "
            f"(it has {', '.join(map(repr, columns[:12]))}); check that this is the task's file."
        )


def write_values(path: Path, values: Iterable[np.ndarray]) -> Path:
    r"""Writes one line an example, its numbers separated by tabs, without a header.

    Args:
        path: the file to write, e.g. `test_results.tsv`.
        values: [numbers] of each example, e.g. the probabilities of the classes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "test_results.tsv"
        >>> write_values(path, np.array([[0.25, 0.75]])).read_text()
        '0.25\t0.75\n'
    """
    with open_whole(path) as file:
        for row in values:
            file.write("\t".join(str(number) for number in row.astype(np.float32)) + "\n")
    return path


def write_submission(path: Path, answers: Iterable[tuple[str, str]]) -> Path:
    r"""Writes the file that GLUE's server takes: a header, then index and answer.

    Args:
        path: the file to write, named as GLUE wants it, e.g. `CoLA.tsv`.
        answers: the index and the label (or number) of each example.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "RTE.tsv"
        >>> write_submission(path, [("0", "entailment")]).read_text()
        'index\tprediction\n0\tentailment\n'
    """
    with open_whole(path) as file:
        file.write("index\tprediction\n")
        for identifier, answer in answers:
            file.write(f"{identifier}\t{answer}\n")
    return path
