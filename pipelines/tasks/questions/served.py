"""A model for questions as it is served: question and passage in, answer and position out.

The rows are those of `question_rows` and the spans those of `find_best_spans`, inside a TensorFlow
graph, which runs the model on a few rows at a time, however many windows a passage has.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.serving.signatures import ServedModel, graph_function, text_specs, utf16_length
from keras_bert_impl.tokenization.graph_rows import (
    owned_in_graph,
    pack_in_graph,
    trim_to_longest,
    window_contents,
    windows_in_graph,
)
from keras_bert_impl.tokenization.long_texts import Windows
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.answerer import ANSWERS, LOGITS, PLACES, ServingSettings
from pipelines.tasks.questions.answers import SURELY_NO_ANSWER, dropped_at_the_end
from pipelines.tasks.questions.rows import WindowSettings

if TYPE_CHECKING:
    from keras_bert_impl.serving.opened_model import OpenedModel


class GraphRows(NamedTuple):
    """Rows of some questions, and what undoes them; numbers are int64."""

    inputs: list[tf.Tensor]  # input_ids, input_mask and segment_ids, int32 [rows, length]
    question: tf.Tensor  # [rows], its number; never falling
    offset: tf.Tensor  # [rows], where the passage begins in a row
    windows: Windows  # over the passages
    passage_from: tf.Tensor  # [rows], where the passage of a row begins in `text_start`
    owned: tf.RaggedTensor  # bool [rows, (tokens of the window)], whether a row shows most there
    text_start: tf.Tensor  # [tokens of all passages], where a token begins, in bytes of its passage
    text_end: tf.Tensor  # [tokens of all passages], where it ends

    def is_of_passage(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether positions [rows, n] of each row are tokens of its passage: bool [rows, n]."""
        inside = positions - self.offset[:, tf.newaxis]
        size = (self.windows.end - self.windows.start)[:, tf.newaxis]
        return (inside >= 0) & (inside < size)

    def is_owned(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether these are tokens of the passage that their row owns: bool [rows, n]."""
        inside = positions - self.offset[:, tf.newaxis] + self.owned.row_starts()[:, tf.newaxis]
        owned = tf.concat([self.owned.flat_values, [False]], axis=0)  # there may be no token
        nothing = tf.size(owned, tf.int64) - 1
        return tf.gather(owned, tf.where(self.is_of_passage(positions), inside, nothing))

    def tokens(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """The tokens at positions int64 [n] of rows int64 [n]: their numbers in `text_start`."""
        first = self.passage_from + self.windows.start - self.offset  # [rows]
        return tf.gather(first, rows) + positions


def pack_questions(
    tokenizer: Callable[[tf.Tensor], tuple[Any, Any, Any]],
    vocabulary: Vocabulary,
    settings: WindowSettings,
    questions: tf.Tensor,
    passages: tf.Tensor,
) -> GraphRows:
    """Packs questions with windows of their passages, strings [batch]; see `question_rows`."""
    asked = tokenizer(questions)[0][:, : settings.max_query_length]
    asked = asked.with_row_splits_dtype(tf.int64)
    ids, starts, ends = tokenizer(passages)
    ids = ids.with_row_splits_dtype(tf.int64)
    room = settings.max_seq_length - asked.row_lengths() - 3  # [CLS], [SEP] and [SEP]
    windows = windows_in_graph(ids.row_lengths(), room, settings.doc_stride)
    shown = window_contents(ids, windows)  # [rows, (tokens)]
    asked = tf.gather(asked, windows.document)
    packed = trim_to_longest(pack_in_graph(asked, shown, settings.max_seq_length, vocabulary))
    return GraphRows(
        inputs=[packed[name] for name in ENCODER_INPUTS],
        question=windows.document,
        offset=asked.row_lengths() + 2,
        windows=windows,
        passage_from=tf.gather(ids.row_starts(), windows.document),
        owned=owned_in_graph(windows).with_row_splits_dtype(tf.int64),
        text_start=starts.flat_values,
        text_end=ends.flat_values,
    )


_IMPOSSIBLE = -float("inf")


class GraphSpans(NamedTuple):
    """Spans of some questions: question after question, each question's best one first.

    The score is the sum of the logits, float64; start and end are bytes of the passage, int64.
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

    Logits are float32 [rows, length]; a question gets `n_best_size` spans at most.
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
    of_questions = tf.RaggedTensor.from_value_rowids(order, tf.gather(question, order))
    order = of_questions[:, :n_best_size].flat_values
    return GraphSpans(
        tf.gather(question, order),
        tf.gather(score, order),
        tf.gather(rows.text_start, tf.gather(first, order)),
        tf.gather(rows.text_end, tf.gather(last, order)),
    )


def null_scores_in_graph(
    rows: GraphRows, start_logits: tf.Tensor, end_logits: tf.Tensor
) -> tf.Tensor:
    """The sum of the logits at [CLS], of each question's row where it is lowest: [questions]."""
    starts, ends = (tf.cast(logits[:, 0], tf.float64) for logits in (start_logits, end_logits))
    return tf.math.segment_min(starts + ends, rows.question)


def _best_positions(rows: GraphRows, logits: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions int64 [rows, k] of each row's highest logits, and these, float64 [rows, k]."""
    of_tokens = tf.where(rows.inputs[1] > 0, logits, _IMPOSSIBLE)
    best = tf.math.top_k(of_tokens, tf.minimum(count, tf.shape(logits)[1]))
    return tf.cast(best.indices, tf.int64), tf.cast(best.values, tf.float64)


def _best_of_rows(scores: tf.Tensor, count: int) -> tuple[tf.Tensor, ...]:
    """The best possible spans of each row: its number, the ranks of start and end, the score.

    Scores are float64 [rows, starts, ends].
    """
    ends = tf.shape(scores, out_type=tf.int64)[2]
    flat = tf.reshape(scores, [tf.shape(scores)[0], -1])
    best = tf.math.top_k(flat, tf.minimum(count, tf.shape(flat)[1]))  # [rows, count]
    found = tf.where(best.values > _IMPOSSIBLE)  # [spans, 2]
    chosen = tf.cast(tf.gather_nd(best.indices, found), tf.int64)
    return found[:, 0], chosen // ends, chosen % ends, tf.gather_nd(best.values, found)


def in_blocks(
    function: Callable[..., Mapping[str, tf.Tensor]],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[str],
    rows_at_once: int = 32,
) -> dict[str, tf.Tensor]:
    """Calls a function of tensors [rows, length] with a few rows at a time; joins what it gives."""
    rows = tf.shape(inputs[0])[0]
    blocks = -(-rows // rows_at_once)
    empty = [
        tf.TensorArray(tf.float32, blocks, infer_shape=False, element_shape=[None, None])
        for _ in outputs
    ]

    def compute(block: tf.Tensor, arrays: Sequence[tf.TensorArray]) -> tuple:
        start = block * rows_at_once
        answer = function(*(array[start : start + rows_at_once] for array in inputs))
        found = zip(arrays, outputs, strict=True)
        return block + 1, [array.write(block, answer[name]) for array, name in found]

    _, full = tf.while_loop(
        lambda block, _: block < blocks, compute, (0, empty), parallel_iterations=1
    )
    return {name: array.concat() for name, array in zip(outputs, full, strict=True)}


class ServedQuestions(ServedModel):
    """The signatures of a model for questions; each takes question and passage, strings [batch].

    `serving_default` gives an answer each, [batch], and `answers` the best ones, padded,
    [batch, n_best_size]; `QuestionForm.outputs` says what the outputs are. A score without an
    answer is a million less than no_answer_score, which says nothing where all questions had one.

    Passages of any length are read in windows, a few at a time.
    """

    def __init__(self, opened: "OpenedModel", settings: ServingSettings) -> None:
        super().__init__(opened.model)
        model = opened.model
        tokenizer = graph_function(
            GraphTokenizer(opened.text, with_spans=True), text_specs("texts")
        )
        packing = tokenizer, opened.text.vocabulary, settings.windows
        choice = settings.answers
        count = choice.n_best_size

        def logits(*inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
            return model(dict(zip(ENCODER_INPUTS, inputs, strict=True)), training=False)

        def answers(question: tf.Tensor, passage: tf.Tensor) -> dict[str, tf.Tensor]:
            rows = pack_questions(*packing, question, passage)
            found = in_blocks(logits, rows.inputs, LOGITS)
            starts, ends = (found[name] for name in LOGITS)  # [rows, length] both
            null = null_scores_in_graph(rows, starts, ends)  # [batch]
            spans = best_spans_in_graph(rows, starts, ends, count, choice.max_answer_length)
            scores = _dense(spans.question, spans.score, null, count, -math.inf)
            least = null[:, tf.newaxis] - SURELY_NO_ANSWER
            scores = tf.where(tf.math.is_inf(scores), least, scores)  # [batch, count]
            answered = null - scores[:, 0] <= settings.threshold
            return {
                **_texts(spans, passage, count),
                "scores": tf.cast(scores, tf.float32),
                "no_answer_score": tf.cast(null, tf.float32),
                "has_answer": answered | (not choice.version_2_with_negative),
            }

        best_answers = self.add_signature(ANSWERS, answers, text_specs("question", "passage"))

        def answer(question: tf.Tensor, passage: tf.Tensor) -> dict[str, tf.Tensor]:
            found = best_answers(question, passage)
            best = {
                name: tf.where(found["has_answer"], found[several][:, 0], nothing)
                for several, (name, nothing) in PLACES.items()
            }
            score = found["scores"][:, 0]
            return {**best, "score": score, "no_answer_score": found["no_answer_score"]}

        self.add_signature("serving_default", answer, text_specs("question", "passage"))


def _texts(spans: GraphSpans, passage: tf.Tensor, count: int) -> dict[str, tf.Tensor]:
    """The answers as their passages have them, and where: [batch, count]."""
    of = tf.gather(passage, spans.question)  # [spans]
    before = tf.strings.substr(of, tf.zeros_like(spans.start), spans.start)
    starts = tf.strings.length(before, unit="UTF8_CHAR")
    texts = tf.strings.substr(of, spans.start, spans.end - spans.start)
    texts = tf.strings.regex_replace(texts, dropped_at_the_end(), "")
    ends = starts + tf.strings.length(texts, unit="UTF8_CHAR")
    starts_utf16 = utf16_length(before)
    values = texts, starts, ends, starts_utf16, starts_utf16 + utf16_length(texts)
    dense = {
        name: _dense(spans.question, array, passage, count, nothing)
        for (name, (_, nothing)), array in zip(PLACES.items(), values, strict=True)
    }
    real = _dense(spans.question, tf.ones_like(starts), passage, count, 0)
    return {**dense, "answer_counts": tf.reduce_sum(real, axis=1)}


def _dense(
    question: tf.Tensor, values: tf.Tensor, batch: tf.Tensor, count: int, padding: Any
) -> tf.Tensor:
    """The first values of each question, [questions, count]; question numbers never fall."""
    questions = tf.shape(batch, out_type=tf.int64)[0]
    ragged = tf.RaggedTensor.from_value_rowids(values, question, nrows=questions)
    return ragged.to_tensor(padding, shape=[None, count])
