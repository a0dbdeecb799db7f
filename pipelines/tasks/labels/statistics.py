"""A first pass over files of examples: what labels there are, and what is wrong, before training.

Statistics of ten million rows take 8 bytes of memory a training row (a hash of its texts, by which
rows that stand in two files are found and a dev set is cut off), and one entry a label.
"""

import logging
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from pipelines.tables.files import TableFile
from pipelines.tasks.labels.labelling import (
    Kind,
    Labelled,
    Labelling,
    Source,
    is_empty,
    labels_in,
    text_key,
)

_LOGGER = logging.getLogger(__name__)
_FEW_LABELS = 50  # so many are plausible for any number of rows
_MOST_LABELS = 100_000
_SHOWN = 5


@dataclass
class LabelStatistics:
    """Statistics of a file's labelled rows.

    Attributes:
        source: the file.
        labels: how many rows have each label (of several at once: each single label).
        rows: how many rows have a text; the others are not trained on.
        numbers: the smallest and the largest number of a regression.
        keys: a hash of each row's texts, by the group within which a dev set is cut off.
    """

    source: Source
    labels: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    numbers: tuple[float, float] = (math.inf, -math.inf)
    keys: dict[str, "array[int]"] = field(default_factory=dict)

    def all_keys(self) -> NDArray[np.uint64]:
        """All hashes, sorted: uint64 [rows]."""
        keys = [np.frombuffer(some, np.uint64) for some in self.keys.values()]
        together = np.concatenate(keys) if keys else np.array([], np.uint64)
        together.sort()
        return together

    def count(self, example: Labelled, held: Sequence[str], seed: int) -> None:
        """Counts a row with a text and the single labels that it has."""
        self.rows += 1
        if self.source.labelling and self.source.labelling.kind == "number":
            number = float(str(example.label))
            self.numbers = min(self.numbers[0], number), max(self.numbers[1], number)
        else:
            self.labels.update(held)
        key = text_key(seed, example.text_a, example.text_b)
        self.keys.setdefault(held[0] if held else "", array("Q")).append(key)


def training_statistics(source: Source, seed: int) -> LabelStatistics:
    """Reads a whole training file."""
    statistics, empty = LabelStatistics(source), _EmptyTexts(source)
    for example in source.examples():
        if example.label is None:
            raise UserError(
                f"{source.file.name}: line {example.line} has no label in "
                f"{_columns_in_words(source)}; add it or remove the line."
            )
        if not empty.note(example):
            statistics.count(example, labels_in(source.labelling, example.label), seed)
            _check_number_of_labels(statistics)
    empty.say("left out of training")
    _check_labels(statistics)
    _warn_of_contradictions(statistics, seed)
    return statistics


def check_scored(source: Source, labels: Sequence[str], *, required: bool) -> bool:
    """Reads a dev or test file.

    Args:
        labels: the labels of training; () for a regression.

    Returns:
        Whether it has labels. A test file in which no row has a label of training has none: such
        sets are published with a stand-in such as -1 or ?.
    """
    known, good, bad = frozenset(labels), 0, None
    empty = _EmptyTexts(source)
    for example in source.examples():
        empty.note(example)
        wrong = _what_is_wrong(source, example, known)
        good += wrong is None
        bad = bad or wrong
    empty.say("evaluated and predicted as texts without words")
    if bad and (good or required):
        raise UserError(bad)
    return good > 0


def are_stand_ins(file: TableFile, columns: Sequence[str], kind: Kind) -> bool:
    """Whether all rows have the same in place of labels, and it is no label of this kind.

    Test sets are published so, with -1, ? or nothing. Of single labels `check_scored` tells, which
    knows those of training.
    """
    if kind == "one":
        return False
    first, cells = None, set[str]()
    for record in file.records():
        first = first or record
        cells.update(str(record.values.get(column)) for column in columns)
        if len(cells) > 1:
            return False
    if first is None or cells <= {"None", ""}:
        return True
    try:
        label = Labelling(kind, tuple(columns)).read(file, first)
    except UserError:
        return True
    return kind == "number" and float(str(label)) == -1


def warn_of_shared_rows(training: LabelStatistics, other: Source, seed: int) -> int:
    """Says how many rows of another file stand in the training file as well; gives their number."""
    known = training.all_keys()
    lines: list[int] = []
    count = 0
    for example in other.examples():
        key = np.uint64(text_key(seed, example.text_a, example.text_b))
        position = int(np.searchsorted(known, key))
        if position < len(known) and known[position] == key and example.text_a.strip():
            count += 1
            if len(lines) < _SHOWN:
                lines.append(example.line)
    if count:
        _LOGGER.warning(
            "%s: %s in %s as well (%s); figures on such rows say little about new texts.",
            other.file.name,
            "1 row stands" if count == 1 else f"{count} rows stand",
            training.source.file.name,
            _lines_in_words(lines, count),
        )
    return count


def _warn_of_contradictions(found: LabelStatistics, seed: int) -> None:
    """Says how many rows have the same text as others and another label."""
    if found.source.labelling is None or found.source.labelling.kind != "one":
        return
    distinct = [np.unique(np.frombuffer(keys, np.uint64)) for keys in found.keys.values()]
    texts, labels = np.unique(np.concatenate(distinct), return_counts=True)
    several = set(texts[labels > 1].tolist())
    if not several:
        return
    lines = [
        example.line
        for example in found.source.examples()
        if text_key(seed, example.text_a, example.text_b) in several and not is_empty(example)
    ]
    _LOGGER.warning(
        "%s: %d rows have the text of another row with another label (%s), and no model can be "
        "right about both; correct them or leave them out.",
        *(found.source.file.name, len(lines), _lines_in_words(lines[:_SHOWN], len(lines))),
    )


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in the order of the classes: numbers by their value, anything else by its characters.

    Example:
        >>> in_order(["10", "9", "-1"]), in_order(["b", "10", "a"])
        (('-1', '9', '10'), ('10', 'a', 'b'))
    """
    labels = sorted(labels)
    try:
        numbers = {label: float(label) for label in labels}
    except ValueError:
        return tuple(labels)
    if not all(map(math.isfinite, numbers.values())):
        return tuple(labels)
    return tuple(sorted(labels, key=numbers.__getitem__))


def dev_thresholds(statistics: LabelStatistics, share: float) -> Mapping[str, int]:
    """The hash below which a row of each group belongs to the dev set.

    Rows with the same texts have the same hash, so they are on the same side.
    """
    thresholds = {}
    for group, keys in statistics.keys.items():
        hashes = np.frombuffer(keys, np.uint64)
        hashes.sort()  # in place: a copy of ten million would be the most that is held
        first = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1  # where the next distinct one begins
        count = min(round(share * (len(first) + 1)), len(first))
        thresholds[group] = int(hashes[first[count - 1]]) if count > 0 else 0
    return thresholds


class _EmptyTexts:
    """Counts the rows without text, and says so at the end."""

    def __init__(self, source: Source) -> None:
        self._source, self._count = source, 0
        self._lines: list[int] = []

    def note(self, example: Labelled) -> bool:
        """Whether the example is one."""
        empty = is_empty(example)
        if empty:
            self._count += 1
            if len(self._lines) < _SHOWN:
                self._lines.append(example.line)
        return empty

    def say(self, what_happens: str) -> None:
        if self._count:
            lines = _lines_in_words(self._lines, self._count)
            _LOGGER.warning(
                "%s: %s no text (%s); %s %s.",
                self._source.file.name,
                "1 row has" if self._count == 1 else f"{self._count} rows have",
                lines,
                "it is" if self._count == 1 else "they are",
                what_happens,
            )


def _what_is_wrong(source: Source, example: Labelled, known: frozenset[str]) -> str | None:
    where = f"{source.file.name}: line {example.line}"
    if example.label is None:
        return f"{where} has no label in {_columns_in_words(source)}; add it or remove the line."
    unknown = [one for one in labels_in(source.labelling, example.label) if one not in known]
    if unknown:
        return (
            f"{where}: the label {shown(unknown[0])} does not stand in the training file; correct "
            "it, "
            "or leave such rows out with `ignored_labels`."
        )
    return None


def _columns_in_words(source: Source) -> str:
    return f"the column {', '.join(map(repr, source.columns.labels))}"


def _lines_in_words(lines: Sequence[int], count: int) -> str:
    more = ", ..." if count > len(lines) else ""
    return f"line{'s' * (count > 1)} {', '.join(map(str, lines))}{more}"


def _check_number_of_labels(found: LabelStatistics) -> None:
    if len(found.labels) > _MOST_LABELS:
        raise _too_many(found)


def _too_many(found: LabelStatistics) -> UserError:
    return UserError(
        f"{found.source.file.name}: {_columns_in_words(found.source)} has {len(found.labels)} "
        f"different labels in {found.rows} rows; for numbers to predict give `regression=True`, "
        "or name another `label_column`."
    )


def _check_labels(found: LabelStatistics) -> None:
    source, count = found.source, len(found.labels)
    name = source.file.name
    if not found.rows:
        raise UserError(
            f"{name}: no row is left to train on, for all of them have no text in the column "
            f"{', '.join(map(repr, source.columns.texts))} or a label that is left out; name "
            "another `text_column`."
        )
    if source.labelling is None:
        return
    if source.labelling.kind == "number":
        _check_numbers(found)
        return
    fraction = _fraction_in(found.labels)
    if count > _FEW_LABELS and (fraction or 2 * count > found.rows):
        raise _too_many(found)
    several = source.labelling.kind in ("several", "columns")
    names = ", ".join(map(repr, found.labels)) or "none"
    if source.labelling.kind == "columns":
        never = [column for column in source.labelling.columns if column not in found.labels]
        if never:
            raise UserError(
                f"{name}: no row has a 1 in the column {shown(never[0])}, so that the label "
                "cannot be "
                "learned; leave it out of `label_column`."
            )
    if count < 2:
        what = "labels" if several else "classes"
        raise UserError(
            f"{name}: there must be two {what} or more in {_columns_in_words(source)}, but the "
            f"only one is {names}; name another `label_column`, or add examples."
        )
    _check_spelling(found)
    if fraction:
        _LOGGER.warning(
            "%s: its labels are numbers such as %s, and are taken for %d classes; to predict "
            "numbers give `regression=True`.",
            name,
            fraction,
            count,
        )


def _fraction_in(labels: Collection[str]) -> str | None:
    """A label that is no whole number, where all are numbers."""
    if not all(map(_is_number, labels)):
        return None
    return next((label for label in labels if not float(label).is_integer()), None)


def _check_numbers(found: LabelStatistics) -> None:
    smallest, largest = found.numbers
    if smallest == largest:
        raise UserError(
            f"{found.source.file.name}: all rows have the number {smallest} in "
            f"{_columns_in_words(found.source)}, so that there is nothing to learn; name another "
            "`label_column`."
        )


def _check_spelling(found: LabelStatistics) -> None:
    """Refuses labels that a reader takes for one."""
    name = found.source.file.name
    bare = Counter(label.strip() for label in found.labels)
    if spaced := [label for label in found.labels if bare[label.strip()] > 1]:
        raise UserError(
            f"{name}: the labels {' and '.join(map(repr, spaced[:2]))} differ in white space only; "
            "write each label in one way."
        )
    numbers = Counter(float(label) for label in found.labels if _is_number(label))
    twice = [number for number, times in numbers.items() if times > 1]
    if twice:
        same = [label for label in found.labels if _is_number(label) and float(label) == twice[0]]
        raise UserError(
            f"{name}: the labels {' and '.join(map(repr, same))} are the same number; write each "
            "label in one way."
        )


def _is_number(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False
