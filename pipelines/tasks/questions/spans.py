"""The spans of each question that a model finds best, best first, over all its windows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipelines.records.rows import Numbers, Rows

Logits = NDArray[np.float64]


class BestSpans(NamedTuple):
    """Spans of some questions: question after question, each question's best one first.

    Attributes:
        row: int64 [spans], the row that a span is in.
        first: int64 [spans], its first position in the row.
        last: int64 [spans], its last position.
        start_logit: float64 [spans].
        end_logit: float64 [spans].
        offsets: int64 [questions + 1], where the spans of each question begin.
    """

    row: Numbers
    first: Numbers
    last: Numbers
    start_logit: Logits
    end_logit: Logits
    offsets: Numbers


class NullLogits(NamedTuple):
    """How much a model is for "no answer": the logits at [CLS], of the row where they are lowest.

    Attributes:
        start: float64 [questions].
        end: float64 [questions].
    """

    start: Logits
    end: Logits


def dense_logits(rows: Rows, logits: ArrayLike) -> NDArray[np.float32]:
    """Puts the logits of the real tokens of all rows into one array.

    Args:
        rows: the rows.
        logits: float32 [tokens of all rows].

    Returns:
        float32 [rows, tokens of the longest row], minus infinity at padding.
    """
    dense = np.full((len(rows), int(rows.lengths.max(initial=0))), -np.inf, np.float32)
    dense[np.arange(dense.shape[1]) < rows.lengths[:, None]] = np.asarray(logits)
    return dense


def find_best_spans(
    rows: Rows, start: ArrayLike, end: ArrayLike, n_best_size: int, max_answer_length: int
) -> BestSpans:
    """Finds the spans between each row's best starts and best ends, as the original does.

    A span starts at a token that its window shows best, and does not leave the passage. Spans with
    equal scores stay in the order of their rows, then starts, then ends; equal logits in the order
    of the text.

    Args:
        rows: of some questions, with `text_end` and `is_max_context`.
        start: float [rows, length] logits; those of padding, where a model gave any, count among
            the best but give no span.
        end: float [rows, length] logits.
        n_best_size: how many starts and ends of each row to combine.
        max_answer_length: the most tokens of a span.
    """
    starts, ends = np.asarray(start, np.float64), np.asarray(end, np.float64)
    firsts, lasts = _best_positions(starts, n_best_size), _best_positions(ends, n_best_size)
    padded = rows.padded(starts.shape[1])
    may_start = np.take_along_axis(padded["is_max_context"] > 0, firsts, axis=1)
    may_end = np.take_along_axis(padded["text_end"] > 0, lasts, axis=1)
    more = lasts[:, None, :] - firsts[:, :, None]  # [rows, starts, ends]
    possible = (more >= 0) & (more < max_answer_length)
    possible &= may_start[:, :, None] & may_end[:, None, :]
    row, start_rank, end_rank = np.nonzero(possible)
    first, last = firsts[row, start_rank], lasts[row, end_rank]
    start_logit, end_logit = starts[row, first], ends[row, last]
    order = np.lexsort((-(start_logit + end_logit), rows.examples[row]))  # stable
    questions = int(rows.examples[-1]) + 1 if len(rows) else 0
    offsets = np.searchsorted(rows.examples[row][order], np.arange(questions + 1))
    positions = row[order], first[order], last[order]
    return BestSpans(*positions, start_logit[order], end_logit[order], offsets)


def _best_positions(logits: Logits, count: int) -> Numbers:
    """The positions of the highest logits of each row, the first of equal ones first."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :count]


def find_null_logits(rows: Rows, start: ArrayLike, end: ArrayLike) -> NullLogits:
    """Finds the row of each question where the logits at [CLS] are lowest; the first of equals.

    Args:
        rows: of some questions.
        start: float [rows, length] logits.
        end: float [rows, length] logits.
    """
    starts = np.asarray(start, np.float64)[:, 0]
    ends = np.asarray(end, np.float64)[:, 0]
    order = np.lexsort((starts + ends, rows.examples))
    lowest = order[np.flatnonzero(np.diff(rows.examples[order], prepend=-1))]
    return NullLogits(starts[lowest], ends[lowest])
