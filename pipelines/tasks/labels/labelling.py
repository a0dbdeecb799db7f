"""Kinds of labels, and examples: texts, a label, the line they begin on."""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.tokenization.reference import as_name
from pipelines.fine_tuning.heads import as_label_list
from pipelines.tables.columns import Columns, is_nan, type_of, value_of
from pipelines.tables.files import Record, TableFile

Kind = Literal["one", "several", "columns", "number"]
"""What a label is: one of the labels; a list of them; a column each; a number."""

_LIST_OF_PYTHON = re.compile(r"\[\s*'")
_LARGEST = 3.4e38  # of float32, in which models compute
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")


@dataclass(frozen=True)
class Labelling:
    """How the cells of the label's columns become a label."""

    kind: Kind
    columns: tuple[str, ...]

    def read(self, file: TableFile, record: Record) -> str | None:
        """Reads a record's label, as the heads understand it; None where it has none."""
        values = [value_of(file, record, column) for column in self.columns]
        try:
            if self.kind == "columns":
                return self._of_columns(values)
            (value,) = values
            if value is None or value == "":
                return None
            if self.kind == "one" and is_nan(value):
                return None
            if self.kind == "several":
                return as_label_list(_list_of(value))
            if self.kind == "number":
                return _number_of(value)
            return as_label(value)
        except ValueError as error:
            raise UserError(f"{file.name}: line {record.line}: {error}") from error

    def _of_columns(self, values: Sequence[Any]) -> str | None:
        if all(value is None for value in values):
            return None
        held = []
        for column, value in zip(self.columns, values, strict=True):
            word = as_label(value).lower()
            if word in _YES:
                held.append(column)
            elif word not in _NO:
                raise ValueError(
                    f"the column {shown(column)} has {shown(value)}; it must be 0 or 1."
                )
        return as_label_list(held)


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


def find_labelling(
    file: TableFile,
    labels: tuple[str, ...],
    *,
    regression: bool,
) -> Labelling | None:
    """Looks at the first label: what labels are in this file; None where no row has one."""
    if regression:
        return Labelling("number", labels)
    if len(labels) > 1:
        return Labelling("columns", labels)
    for record in file.records():
        value = value_of(file, record, labels[0])
        if value is None or value == "" or is_nan(value):
            continue
        if _as_list(value) is not None:
            return Labelling("several", labels)
        if isinstance(value, str) and _LIST_OF_PYTHON.match(value):
            raise UserError(
                f"{file.name}: line {record.line}: the label {shown(value)} looks like a list, "
                'but is not JSON; write lists as ["one", "two"].'
            )
        return Labelling("one", labels)
    return None


def _as_list(value: Any) -> list[Any] | None:
    """A list, or what a text such as '["a"]' holds; None of anything else."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = bounded_loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def _list_of(value: Any) -> list[str]:
    found = _as_list(value)
    if found is None:
        raise ValueError(
            f"the label {shown(value)} is {type_of(value)}, but the first one is a list; write all "
            "labels as lists."
        )
    labels = [as_label(one) for one in found]
    if len(set(labels)) < len(labels) or "" in labels:
        raise ValueError(f"the label {shown(value)} has a label twice or an empty one; correct it.")
    return labels


def _number_of(value: Any) -> str:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _LARGEST:
        raise ValueError(
            f"the label {shown(value)} is no finite number of single precision, as a regression "
            "needs."
        )
    return str(value)


class Labelled(NamedTuple):
    """One example of a file."""

    line: int
    text_a: str
    text_b: str | None
    label: str | None


@dataclass(frozen=True)
class Source:
    """A file of examples with its columns known.

    Attributes:
        labelling: what its labels are; None: they are not read.
    """

    file: TableFile
    columns: Columns
    labelling: Labelling | None

    def examples(self) -> Iterator[Labelled]:
        """Reads the examples from the beginning."""
        file, labelling = self.file, self.labelling
        for record in file.records():
            label = None if labelling is None else labelling.read(file, record)
            yield Labelled(record.line, *self.columns.read_texts(file, record), label)


def text_key(seed: int, text_a: str, text_b: str | None) -> int:
    """A hash of an example's texts: 8 bytes, equal on every machine.

    Example:
        >>> text_key(0, "a", "b") == text_key(0, "a", "b") != text_key(1, "a", "b")
        True
    """
    texts = f"{text_a}\0{'' if text_b is None else text_b}".encode("utf-8", "surrogatepass")
    key = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(texts, digest_size=8, key=key).digest(), "little")


def labels_in(labelling: Labelling | None, label: str) -> list[str]:
    """The single labels of a label.

    Example:
        >>> labels_in(Labelling("several", ("label",)), '["b", "a"]')
        ['b', 'a']
    """
    if labelling is None or labelling.kind == "number":
        return []
    return bounded_loads(label) if labelling.kind in ("several", "columns") else [label]


def is_empty(example: Labelled) -> bool:
    """Whether an example has no text at all."""
    return not example.text_a.strip() and not (example.text_b or "").strip()
