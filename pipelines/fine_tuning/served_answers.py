"""Compares what a SavedModel answers with what was answered offline, by the same model."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipelines.tables.writing import digits

Arrays = Mapping[str, np.ndarray]


class Answer(NamedTuple):
    """The answer to one row.

    Attributes:
        said: what must be the same: a label (several: a JSON list; a number: none), or the first
            character of an answer and the one after its last.
        values: probabilities or a number, as close as rounding leaves them.
        note: what a reader of a difference wants to know.
    """

    said: Any
    values: tuple[float, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        numbers = " ".join(map(digits, self.values))
        return " ".join(filter(None, (str(self.said), numbers, self.note)))


@dataclass(frozen=True)
class Comparison:
    """Rows with the answers that a run wrote, and how a SavedModel is asked for them.

    Attributes:
        what: what is compared, in words.
        names: of the rows, to show them.
        inputs: the texts of all rows, by the names of the signature's inputs.
        offline: the answers of the run; None where it has none.
        signature: which one is asked.
        answers: the answers in what it gives.
    """

    what: str
    names: Sequence[str]
    inputs: Mapping[str, Sequence[str]]
    offline: Sequence[Answer | None]
    signature: str
    answers: Callable[[Arrays], Iterator[Answer]]


@dataclass(frozen=True)
class ServedResult:
    """The result of a comparison.

    Attributes:
        count: how many rows were asked.
        differing: the rows whose answers are not the same: name, offline and served answer.
        furthest: how far two numbers of the same row lie apart at most; None if there are none.
        seconds: the time of all calls but a first one, which traces.
    """

    count: int
    differing: list[tuple[str, Answer | None, Answer]]
    furthest: float | None
    seconds: float


def compare_served(
    ask: Callable[..., Mapping[str, Any]], comparison: Comparison, batch_size: int
) -> ServedResult:
    """Asks a SavedModel all rows, and compares its answers with those that were given offline.

    Args:
        ask: the signature: tensors of texts by name to tensors by name.
        comparison: what to ask, and what was answered.
        batch_size: rows of a call.

    Raises:
        ValueError: an answer has fewer or more numbers than the other.
    """
    some = min(batch_size, len(comparison.names))
    list(_asked(ask, comparison, batch_size, some))  # traces, outside the time
    start = time.perf_counter()
    served = list(_asked(ask, comparison, batch_size, len(comparison.names)))
    seconds = time.perf_counter() - start
    rows = list(zip(comparison.names, comparison.offline, served, strict=True))
    return ServedResult(
        len(served),
        [row for row in rows if row[1] is None or row[1].said != row[2].said],
        _furthest(comparison.offline, served),
        seconds,
    )


def _asked(
    ask: Callable[..., Mapping[str, Any]], comparison: Comparison, batch_size: int, count: int
) -> Iterator[Answer]:
    import tensorflow as tf

    for start in range(0, count, batch_size):
        texts = {
            name: tf.constant(list(some[start : start + batch_size]))
            for name, some in comparison.inputs.items()
        }
        found = {name: np.asarray(value) for name, value in ask(**texts).items()}
        yield from comparison.answers(found)


def _furthest(offline: Sequence[Answer | None], served: Sequence[Answer]) -> float | None:
    """How far the numbers of two series lie apart.

    Example:
        >>> _furthest([Answer("a", (0.5, 0.5)), None], [Answer("a", (0.75, 0.25)), Answer("b")])
        0.25
    """
    pairs = [
        pair
        for one, other in zip(offline, served, strict=True)
        if one is not None
        for pair in zip(one.values, other.values, strict=True)
    ]
    return max(abs(one - other) for one, other in pairs) if pairs else None
