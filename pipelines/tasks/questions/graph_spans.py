"""The best spans of each question inside a TensorFlow graph: those of `find_best_spans`."""

from typing import NamedTuple

import tensorflow as tf

from pipelines.tasks.questions.graph_rows import GraphRows

_IMPOSSIBLE = -float("inf")


class GraphSpans(NamedTuple):
    """Spans of some questions: question after question, each question's best one first.

    Attributes:
        question: int64 [spans].
        score: float64 [spans], the sum of the start's and the end's logit.
        start: int64 [spans], the byte of its passage where a span begins.
        end: int64 [spans], the byte where it ends.
    """

    question: tf.Tensor
    score: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor


def best_spans_in_graph(
    rows: GraphRows,
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    n_best_size: int,
    max_answer_length: int,
) -> GraphSpans:
    """Finds the spans between each row's best starts and best ends; see `find_best_spans`.

    Args:
        rows: what the model read.
        start_logits: float32 [rows, length].
        end_logits: float32 [rows, length].
        n_best_size: how many starts and ends of each row to combine, and how many spans of each
            question to give at most.
        max_answer_length: the most tokens of a span.
    """
    first, first_logit = _best_positions(rows, start_logits, n_best_size)  # [rows, k] both
    last, last_logit = _best_positions(rows, end_logits, n_best_size)
    more = last[:, tf.newaxis, :] - first[:, :, tf.newaxis]  # [rows, starts, ends]
    possible = (more >= 0) & (more < max_answer_length)
    possible &= rows.is_owned(first)[:, :, tf.newaxis] & rows.is_of_passage(last)[:, tf.newaxis]
    scores = first_logit[:, :, tf.newaxis] + last_logit[:, tf.newaxis, :]
    scores = tf.where(possible, scores, _IMPOSSIBLE)
    row, start_rank, end_rank, score = _best_of_rows(scores, n_best_size)
    first, last = (
        rows.tokens(row, tf.gather_nd(positions, tf.stack([row, rank], axis=1)))
        for positions, rank in ((first, start_rank), (last, end_rank))
    )
    question = tf.gather(rows.question, row)
    by_score = tf.argsort(-score, stable=True)
    order = tf.gather(by_score, tf.argsort(tf.gather(question, by_score), stable=True))
    # Each span's text is cut out of a copy of its passage: of a book there may be few.
    order = tf.boolean_mask(order, _ranks(tf.gather(question, order)) < n_best_size)
    return GraphSpans(
        tf.gather(question, order),
        tf.gather(score, order),
        tf.gather(rows.text_start, tf.gather(first, order)),
        tf.gather(rows.text_end, tf.gather(last, order)),
    )


def null_scores_in_graph(
    rows: GraphRows, start_logits: tf.Tensor, end_logits: tf.Tensor
) -> tf.Tensor:
    """The sum of the logits at [CLS], of each question's row where it is lowest.

    Args:
        rows: what the model read.
        start_logits: float32 [rows, length].
        end_logits: float32 [rows, length].

    Returns:
        float64 [questions].
    """
    starts, ends = (tf.cast(logits[:, 0], tf.float64) for logits in (start_logits, end_logits))
    return tf.math.segment_min(starts + ends, rows.question)


def _best_positions(rows: GraphRows, logits: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions int64 [rows, k] of each row's highest logits, and these, float64 [rows, k]."""
    is_token = rows.inputs[1] > 0
    best = tf.math.top_k(
        tf.where(is_token, logits, _IMPOSSIBLE), tf.minimum(count, tf.shape(logits)[1])
    )
    return tf.cast(best.indices, tf.int64), tf.cast(best.values, tf.float64)


def _ranks(sorted_numbers: tf.Tensor) -> tf.Tensor:
    """How many equal numbers stand before each: int32 [n]."""
    first = tf.searchsorted(sorted_numbers, sorted_numbers, side="left")
    return tf.range(tf.size(sorted_numbers)) - first


def _best_of_rows(
    scores: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The best possible spans of each row, row after row.

    Args:
        scores: float64 [rows, starts, ends].
        count: how many of a row at most.

    Returns:
        The row, the rank of the start and of the end, int64 [spans] each; the score, float64
        [spans].
    """
    ends = tf.shape(scores, out_type=tf.int64)[2]
    flat = tf.reshape(scores, [tf.shape(scores)[0], -1])
    best = tf.math.top_k(flat, tf.minimum(count, tf.shape(flat)[1]))  # [rows, count]
    found = tf.where(best.values > _IMPOSSIBLE)  # [spans, 2]
    chosen = tf.cast(tf.gather_nd(best.indices, found), tf.int64)
    return found[:, 0], chosen // ends, chosen % ends, tf.gather_nd(best.values, found)
