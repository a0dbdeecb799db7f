"""Files of examples as people have them: CSV, TSV, JSON lines or an array, TFDS data sets.

A file is read from its beginning as often as it is asked for; of an array the text is held, of all
others a megabyte. Its first line says what it is, or the ending of its name:

- CSV: commas (or semicolons, where the first line has no comma); a field in quotation marks may
  hold delimiters, line breaks and doubled quotation marks (RFC 4180).
- TSV: published both with and without quotation. Who writes fields in quotation marks quotes every
  field that holds one and doubles it, so a single one inside a field proves that there is none.
- JSON: an object a line, or one array of objects; their names are the columns. An object inside a
  record has columns of its own, with a dot: `{"labels": {"label": 3}}` has `labels.label`.
- `tfds:NAME:SPLIT`: a data set of TensorFlow Datasets on this machine.
"""

import csv
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import MOST_LINE_BYTES
from keras_bert_impl.json_files import bounded_loads, fault_of_json
from keras_bert_impl.tokenization.reference import as_name, as_text
from pipelines.corpora import encodings
from pipelines.corpora.documents import TFDS, examples_of, open_data_set
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.lines import read_lines, read_text

_LOGGER = logging.getLogger(__name__)

Form = Literal["csv", "tsv", "json_lines", "json_array", "tfds"]
_FORMS_BY_ENDING: dict[str, Form] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json_lines",
    ".ndjson": "json_lines",
    ".json": "json_lines",
}
_JSON = ("json_lines", "json_array")
_PACKINGS = (".gz", ".xz", ".bz2")
_QUOTATION_BLOCKS = 8  # of a megabyte, in which TSV's quotation is looked for
_NO_QUOTATION = re.compile(rb'[^\t\r\n"]"[^\t\r\n"]')
_OPENED = re.compile(rb'(^|\t)"([^"\t]|"")*(\t|$)')
_OF_EXCEL = re.compile(r'"?sep=.?"?\s*')  # a first line that only Excel reads
_BETWEEN_OBJECTS = re.compile(r"[\s,]*")


class Record(NamedTuple):
    """One record of a file."""

    line: int  # on which it begins, from 1; of a data set, the number of the example
    values: dict[str, Any]  # text in CSV and TSV, any JSON value in JSON


@dataclass(frozen=True)
class TableFile:
    """A file of records, its form and its columns known."""

    name: str  # the path, or "tfds:NAME:SPLIT"
    form: Form
    # Composed (see `as_name`); "1", "2", ... without a header, in JSON those of the first object.
    columns: tuple[str, ...] = ()
    delimiter: str = "\t"
    quoted: bool = False
    header: bool = True
    encoding: TextEncoding = UTF_8

    def records(self) -> Iterator[Record]:
        """Reads all records from the beginning."""
        if self.form == "tfds":
            return _data_set_records(self.name)
        if self.form in _JSON:
            return _json_records(self.name, self.form, self.encoding)
        rows = islice(self.rows(), int(self.header), None)
        return _with_columns(self.name, rows, self.columns)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row of CSV and TSV, and the line on which it begins."""
        if self.quoted:
            return _quoted_rows(self.name, self.delimiter, self.encoding)
        lines = read_lines(self.name, self.encoding)
        return ((number, line.split(self.delimiter)) for number, line in lines if line)

    def paths(self) -> list[Path]:
        """The files on disk."""
        if self.form != "tfds":
            return [Path(self.name)]
        builder, split = open_data_set(self.name)
        return [Path(path) for path in builder.info.splits[split].filepaths]


def _with_columns(
    name: str,
    rows: Iterable[tuple[int, list[str]]],
    columns: Sequence[str],
    *,
    skip_broken_rows: bool = False,
) -> Iterator[Record]:
    broken = 0
    for line, cells in rows:
        if len(cells) == len(columns):
            yield Record(line, dict(zip(columns, cells, strict=True)))
        elif skip_broken_rows:
            broken += 1
        else:
            raise UserError(
                f"{name}: line {line} has {len(cells)} columns instead of {len(columns)} "
                f"({', '.join(columns[:12])}); correct it (in CSV, quotation marks enclose a field "
                "that holds the delimiter), or remove the line."
            )
    if broken:
        _LOGGER.warning("%s: left out %d rows with a wrong number of columns.", name, broken)


def open_table(name: str, *, header: bool = True, encoding: TextEncoding = UTF_8) -> TableFile:
    r"""Looks at the beginning of a file: what it is, and its columns.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "train.csv"
        >>> _ = path.write_text('text,label\n"Rain,\nand wind.",1\n')
        >>> file = open_table(str(path))
        >>> file.columns, list(file.records())
        (('text', 'label'), [Record(line=2, values={'text': 'Rain,\nand wind.', 'label': '1'})])
    """
    file = _opened(name, header, encoding)
    first = None if file is None else next(file.records(), None)
    if file is None or first is None:
        raise UserError(f"{name}: has no rows; name a file with examples.")
    return file if file.columns else replace(file, columns=tuple(first.values))


def _opened(name: str, header: bool, encoding: TextEncoding) -> TableFile | None:
    """The file, of JSON without its columns; None where it has no lines."""
    if name.startswith(TFDS):
        return TableFile(name, "tfds", tuple(map(as_name, open_data_set(name)[0].info.features)))
    # Of an array the one line may be the whole file.
    may_be_array = form_by_name(name) in (None, "json_lines")
    is_array = may_be_array and encodings.beginning_of_text(name, encoding).startswith(b"[")
    longest = encodings.MOST_WHOLE_BYTES if is_array else None
    lines = (line for _, line in read_lines(name, encoding, keep_ends=True, longest=longest))
    said = (line for line in lines if not line.isspace() and not _OF_EXCEL.fullmatch(line))
    first = next(said, None)
    if first is None:
        return None
    form = _form(name, first, header)
    if form in _JSON:
        return TableFile(name, form, encoding=encoding)
    delimiter = "\t" if form == "tsv" else ";" if ";" in first and "," not in first else ","
    quoted = form == "csv" or _tsv_is_quoted(name, encoding, first.count("\t"))
    file = TableFile(name, form, (), delimiter, quoted, header, encoding=encoding)
    _, cells = next(file.rows())
    columns = tuple(map(as_name, cells)) if header else tuple(str(n + 1) for n in range(len(cells)))
    return replace(file, columns=columns)


def read_table(
    path: Path,
    needed: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    skip_broken_rows: bool = False,
) -> Iterator[Record]:
    """Reads a file of GLUE's form: tabs, and quotation marks are characters like any other.

    Of several columns empty lines are left out; of one column they are empty texts. Rows with
    another number of columns are refused, or left out and counted (`skip_broken_rows`).
    """
    lines = read_lines(path)
    if columns is None:
        columns = next(lines, (0, ""))[1].split("\t")
        missing = [name for name in needed if name not in columns]
        if columns != [""] and missing:
            raise UserError(
                f"{path}: line 1, the header, has no column {' and no '.join(map(repr, missing))} "
                f"(it has {', '.join(map(repr, columns[:12]))}); check that this is the task's "
                "file."
            )
    rows = ((number, line.split("\t")) for number, line in lines if line or len(columns) == 1)
    record = None
    for record in _with_columns(str(path), rows, columns, skip_broken_rows=skip_broken_rows):
        yield record
    if record is None:
        raise UserError(f"{path}: has no rows; name a file with examples.")


def form_by_name(name: str) -> Form | None:
    """Tells a file's format by the ending of its name, packed or not; None where it says nothing.

    Example:
        >>> form_by_name("reviews.csv.gz"), form_by_name("reviews.txt")
        ('csv', None)
    """
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in _PACKINGS else path.suffix
    return _FORMS_BY_ENDING.get(ending)


def _form(name: str, first: str, header: bool) -> Form:
    """A file's format by its first line; by its name where that leaves it open.

    Commas in a TSV file of one column are those of a text, but in a header, where no blank follows.
    """
    named, found = form_by_name(name), _form_by_content(first)
    if named == "json_lines" and found not in _JSON:
        raise UserError(f"{name}: line 1 is no JSON object; write one object a line.")
    if named is None and found is None:
        raise UserError(
            f"{name}: neither its name nor its first line says whether it is CSV, TSV or JSON "
            "lines; let its name end in .csv, .tsv or .jsonl."
        )
    if named == "csv" and found == "tsv" and re.search("[,;]", first):
        return "csv"
    if named == "tsv" and found == "csv" and not (header and not re.search("[,;] ", first)):
        return "tsv"
    return found or named  # type: ignore[return-value]


def _form_by_content(first: str) -> Form | None:
    start = first.lstrip()
    if re.match(r"\{\s*[\"}]", start):
        return "json_lines"
    if re.match(r"\[\s*(\{|\]?\s*$)", start):
        return "json_array"
    if "\t" in first:
        return "tsv"
    return "csv" if re.search("[,;]", first) else None


def _tsv_is_quoted(name: str, encoding: TextEncoding, tabs: int) -> bool:
    """Whether nothing in the first megabytes speaks against quotation, and something for it.

    A field that opens and does not close in a line is no quoted one where this line and the two
    around it, empty ones aside, have as many `tabs` as the header; the next may go on with the
    field, behind a tab. So of one column each line is a row.
    """
    blocks = encodings.read_line_blocks(name, encoding=encoding)
    text = b"".join(block.text for block in islice(blocks, _QUOTATION_BLOCKS))
    if b'"' not in text or _NO_QUOTATION.search(text):
        return False
    lines = list(filter(bytes.strip, text.split(b"\n")))
    if next(blocks, None) is None:
        lines.append(lines[0])  # behind the last line no field goes on
    full = [line.count(b"\t") == tabs for line in lines]
    rows = zip(full, full[1:], full[2:], lines[1:], lines[2:], strict=False)
    return not any(
        before and here and after and following[:1] != b"\t" and _OPENED.search(line)
        for before, here, after, line, following in rows
    )


def _quoted_rows(
    name: str, delimiter: str, encoding: TextEncoding
) -> Iterator[tuple[int, list[str]]]:
    # What an opening quotation mark without its closing one may swallow.
    csv.field_size_limit(MOST_LINE_BYTES)
    lines = (line for _, line in read_lines(name, encoding, keep_ends=True))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    begins = 1
    try:
        for cells in reader:
            of_excel = begins == 1 and _OF_EXCEL.fullmatch(delimiter.join(cells))
            if cells and not of_excel:  # of one column, "" in quotation marks is an empty text
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{name}: the row that begins on line {begins} is not quoted as CSV is ({error}); "
            "enclose fields that hold quotation marks or carriage returns in such marks and double "
            "those inside."
        ) from error


def _json_records(name: str, form: Form, encoding: TextEncoding) -> Iterator[Record]:
    if form == "json_array":
        records = _objects_of_array(name, read_text(name, encoding, encodings.MOST_WHOLE_BYTES))
    else:
        lines = read_lines(name, encoding)
        records = ((n, _object(name, n, line)) for n, line in lines if line.strip())
    # What JSON spells in escapes is text only now.
    yield from (Record(line, encoding.composed_value(values)) for line, values in records)


def _objects_of_array(name: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of an array, each with the line on which it begins."""
    at = text.index("[") + 1
    line = 1 + text.count("\n", 0, at)
    while True:
        start = _BETWEEN_OBJECTS.match(text, at).end()  # type: ignore[union-attr]
        line += text.count("\n", at, start)
        if text[start : start + 1] != "{":
            break
        try:
            _, at = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            at = len(text)  # `_object` says what is wrong
        yield line, _object(name, line, text[start:at], start - text.rfind("\n", 0, start))
        line += text.count("\n", start, at)
    if text[start:].strip() != "]":
        raise UserError(
            f"{name}: line {line} has something other than the next object of its JSON array, or "
            "its end; correct it."
        )


def _object(name: str, line: int, text: str, column: int = 1) -> dict[str, Any]:
    """The columns of the object that a text is, which begins in a line and a column of a file."""
    try:
        values = bounded_loads(text, partial(_once_each, name, line))
    except (ValueError, RecursionError) as error:
        number = line + getattr(error, "lineno", 1) - 1
        fault = fault_of_json(error, None, column)
        raise UserError(f"{name}: line {number} {fault}; correct it.") from error
    if not isinstance(values, dict):
        raise UserError(f"{name}: line {line} is no JSON object; write one object a line.")
    return _once_each(name, line, list(_columns(values, "")))


def _once_each(name: str, line: int, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with each of its keys once; their names may be halves of a surrogate pair."""
    named = [(as_name(as_text(key)), value) for key, value in pairs]
    if len(values := dict(named)) < len(named):
        ((twice, _),) = Counter(key for key, _ in named).most_common(1)
        raise UserError(f"{name}: line {line} has the column {shown(twice)} twice; remove one.")
    return values


def _columns(values: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _columns(value, f"{prefix}{key}.")
        else:
            yield prefix + key, _with_text(value)


def _with_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_text(one) for one in value]
    if isinstance(value, dict):
        return dict(_columns(value, ""))
    return as_text(value) if isinstance(value, str) else value


def _data_set_records(name: str) -> Iterator[Record]:
    builder, split = open_data_set(name)
    features = builder.info.features
    for number, example in enumerate(examples_of(builder, split), start=1):
        values = {as_name(key): _plain_value(features[key], one) for key, one in example.items()}
        yield Record(number, values)


def _plain_value(feature: Any, value: Any) -> Any:
    """A feature's value as JSON has it: a class is its name, null in a split without labels."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        inner = feature.feature if hasattr(feature, "feature") else feature
        return [_plain_value(inner, one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(feature, "int2str"):
        return feature.int2str(value) if value >= 0 else None
    return value
