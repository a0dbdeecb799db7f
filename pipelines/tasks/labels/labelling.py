"""Kinds of labels, and a first pass over files: what labels there are, and what is odd.

Ten million rows take 8 bytes each: a hash of a row's texts, by which rows in two files are found
and a dev set is cut off.
"""

import hashlib
import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.tokenization.reference import as_name
from pipelines.fine_tuning.counts import Counted
from pipelines.fine_tuning.heads import as_label_list, some_of
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.tables.columns import NO_LABELS, Columns, is_blank, is_nan, type_of, value_of
from pipelines.tables.files import Record, TableFile

Kind = Literal["one", "several", "columns", "number"]
"""What a label is: one of the labels; a list of them; a column each; a number."""

_LIST_OF_PYTHON = re.compile(r"\[\s*'")
_LARGEST = 3.4e38  # of float32, in which models compute
EMPTY_CELLS = "rows with an empty cell in a column of a label, which is learned as no"
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


@dataclass(frozen=True)
class Labelling:
    """How the cells of the label's columns become a label."""

    kind: Kind
    columns: tuple[str, ...]
    known: tuple[str, ...] = ()  # the labels of a trained model
    codes: Mapping[str, str] = field(default_factory=dict)  # what stands for some of them

    def read(self, file: TableFile, record: Record) -> str | None:
        """Reads a record's label, as the heads understand it; None where it has none."""
        values = [value_of(file, record, column) for column in self.columns]
        try:
            if self.kind == "columns":
                return self._of_columns(values)
            (value,) = values
            if is_blank(value) or (self.kind == "one" and is_nan(value)):
                return None
            if self.kind == "several":
                return as_label_list(map(self._as_known, _list_of(value)))
            if self.kind == "number":
                return _number_of(value)
            return self._as_known(as_label(value))
        except ValueError as error:
            raise UserError(f"{file.name}: line {record.line}: {error}") from error

    def _as_known(self, label: str) -> str:
        """A label as the model calls it: 1 and LABEL_1 are the same."""
        label = label if label in self.known else self.codes.get(label, label)
        number = label.removeprefix("LABEL_")
        other = number if number != label else f"LABEL_{label}"
        return other if other in self.known and label not in self.known else label

    def _of_columns(self, values: Sequence[Any]) -> str | None:
        if all(value is None for value in values):
            return None
        words = [as_label(value).lower() for value in values]
        for column, value, word in zip(self.columns, values, words, strict=True):
            if word not in (*_YES, *_NO):
                raise ValueError(f"the column {shown(column)} has {shown(value)}, not 0 or 1.")
        return as_label_list(itertools.compress(self.columns, (word in _YES for word in words)))


def as_label(value: Any) -> str:
    """A value of JSON, or a word of the user's, as a label: composed, see `as_name`.

    Example:
        >>> as_label(1), as_label(True), as_label("spam"), as_label(None)
        ('1', 'true', 'spam', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return as_name(str(value))
    raise ValueError(f"the label is {type_of(value)}; it must be text or a number.")


def find_labelling(file: TableFile, labels: tuple[str, ...], regression: bool) -> Labelling:
    """Looks at the first label: what labels are in this file."""
    if regression:
        return Labelling("number", labels)
    if len(labels) > 1:
        return Labelling("columns", labels)
    for record in file.records():
        value = value_of(file, record, labels[0])
        if is_blank(value) or is_nan(value):
            continue
        if _as_list(value) is not None:
            return Labelling("several", labels)
        if isinstance(value, str) and _LIST_OF_PYTHON.match(value):
            raise UserError(
                f"{file.name}: line {record.line}: the label {shown(value)} looks like a list, "
                'but is not JSON; write lists as ["one", "two"].'
            )
        return Labelling("one", labels)
    raise UserError(f"{file.name}: no row has a label in {_in_words(labels)}; name another.")


def _as_list(value: Any) -> list[Any] | None:
    """A list, or what a text such as '["a"]' holds; None of anything else."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = bounded_loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def _list_of(value: Any) -> list[str]:
    if (found := _as_list(value)) is None:
        raise ValueError(f"the label {shown(value)} is no list, as the first one is; write lists.")
    labels = [as_label(one) for one in found]
    if len(set(labels)) < len(labels) or "" in labels:
        raise ValueError(f"the label {shown(value)} has a label twice or an empty one; correct it.")
    return labels


def _number_of(value: Any) -> str:
    number = None if isinstance(value, bool) else finite_number(value)
    if number is None or abs(number) > _LARGEST:
        raise ValueError(f"the label {shown(value)} is no finite number of single precision.")
    return str(value)


@dataclass(frozen=True)
class Source:
    """A file of examples with its columns known; without a labelling its labels are not read."""

    file: TableFile
    columns: Columns
    labelling: Labelling | None

    def examples(self) -> Iterator[TextExample]:
        file, labelling = self.file, self.labelling
        for record in file.records():
            label = None if labelling is None else labelling.read(file, record)
            cells = self.columns.labels if labelling and labelling.kind == "columns" else ()
            empty = any(record.values.get(column) in (None, "") for column in cells)
            note = EMPTY_CELLS if empty else ""
            texts = self.columns.read_texts(file, record)
            yield TextExample(str(record.line), *texts, label, note, record.line)


def text_key(seed: int, text_a: str, text_b: str | None) -> int:
    """A hash of an example's texts: 8 bytes, equal on every machine."""
    texts = f"{text_a}\0{'' if text_b is None else text_b}".encode("utf-8", "surrogatepass")
    key = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(texts, digest_size=8, key=key).digest(), "little")


def labels_in(labelling: Labelling | None, label: str) -> list[str]:
    """The single labels of a label."""
    if labelling is None or labelling.kind == "number":
        return []
    return bounded_loads(label) if labelling.kind in ("several", "columns") else [label]


def is_empty(example: TextExample) -> bool:
    """Whether an example has no text at all."""
    return not example.text_a.strip() and not (example.text_b or "").strip()


_FEW_LABELS = 50  # so many are plausible for any number of rows


@dataclass
class LabelStatistics:
    """Counts of the rows of a training file that have text: of their labels, and their hashes.

    The hashes are by the group within which a dev set is cut off, a row's first label.
    """

    source: Source
    labels: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    keys: dict[str, "array[int]"] = field(default_factory=dict)


def training_statistics(source: Source, seed: int) -> LabelStatistics:
    """Reads a whole training file."""
    found, empty = LabelStatistics(source), Counted()
    for example in source.examples():
        if example.label is None:
            raise UserError(_without_label(source, example.line))
        if is_empty(example):
            empty.add(f"on line {example.line}")
            continue
        held = labels_in(source.labelling, example.label)
        found.rows += 1
        found.labels.update(held)
        key = text_key(seed, example.text_a, example.text_b)
        found.keys.setdefault(held[0] if held else "", array("Q")).append(key)
    empty.warn(source.file.name, "rows without text, which are left out of training")
    _check_labels(found)
    return found


def check_scored(source: Source, labels: Sequence[str], *, required: bool) -> bool:
    """Reads a dev or test file; says whether it has labels: `labels`, or () for numbers.

    A test file without one label of training has none: it is published with stand-ins, -1 or ?.
    """
    labelling, file = source.labelling, source.file
    assert labelling is not None
    known, good, bad, unknown, cells = frozenset(labels), 0, "", Counted(), set[str]()
    for record in file.records():
        if labelling.kind != "one" and len(cells) <= len(NO_LABELS):
            cells.update(str(record.values.get(column)) for column in labelling.columns)
        try:
            label = labelling.read(file, record)
        except UserError as error:
            bad = bad or str(error)
            continue
        if label is None:
            bad = bad or _without_label(source, record.line)
        elif strange := [one for one in labels_in(labelling, label) if one not in known]:
            unknown.add(f"{shown(strange[0])} on line {record.line}")
        else:
            good += 1
    if not required and (not good or (labelling.kind != "one" and cells <= NO_LABELS)):
        return False
    if unknown.count:
        raise UserError(
            f"{file.name}: rows with labels that the model does not know: {unknown.count}, the "
            f"first {unknown.first}; it knows {some_of(labels)}. Correct them, or remove the rows."
        )
    if bad:
        raise UserError(bad)
    return True


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in the order of the classes: by value if all are numbers, else by characters."""
    found = sorted(labels)
    numbers = {label: finite_number(label) for label in found}
    if None not in numbers.values():
        found.sort(key=lambda label: numbers[label] or 0.0)
    return tuple(found)


def dev_thresholds(statistics: LabelStatistics, share: float) -> Mapping[str, int]:
    """The hash below which a row of each group is of the dev set; equal texts stay together."""
    thresholds = {}
    for group, keys in statistics.keys.items():
        hashes = np.frombuffer(keys, np.uint64)
        hashes.sort()  # in place: a copy of ten million would be the most that is held
        first = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1  # where the next distinct one begins
        count = min(round(share * (len(first) + 1)), len(first))
        thresholds[group] = int(hashes[first[count - 1]]) if count > 0 else 0
    return thresholds


def _without_label(source: Source, line: int) -> str:
    where = _in_words(source.columns.labels)
    return f"{source.file.name}: line {line} has no label in {where}; add it or remove the line."


def _in_words(columns: Sequence[str]) -> str:
    return f"the column {', '.join(map(repr, columns))}"


def _check_labels(found: LabelStatistics) -> None:
    """Refuses labels that cannot be learned."""
    source, labels, name = found.source, found.labels, found.source.file.name
    if not found.rows:
        where = _in_words(source.columns.texts)
        raise UserError(f"{name}: no row has a text in {where}; name another `text_column`.")
    if source.labelling is None or source.labelling.kind == "number":
        return
    where, numbers = _in_words(source.columns.labels), [finite_number(one) for one in labels]
    are_fractions = None not in numbers and any(one % 1 for one in numbers if one is not None)
    if len(labels) > _FEW_LABELS and (are_fractions or 2 * len(labels) > found.rows):
        raise UserError(
            f"{name}: {where} has {len(labels)} different labels in {found.rows} rows; for numbers "
            "to predict give `regression=True`, or name another `label_column`."
        )
    if len(labels) < 2:
        raise UserError(
            f"{name}: there must be two labels or more in {where}, but the only one is "
            f"{', '.join(map(repr, labels)) or 'none'}; name another `label_column`, or add "
            "examples."
        )


def finite_number(label: Any) -> float | None:
    """The finite number that a label is; None of any other."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
