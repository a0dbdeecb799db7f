"""A model for questions as it is served: question and passage in, answer and position out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.row_blocks import in_blocks
from keras_bert_impl.serving.signatures import ServedModel, graph_function, text_specs
from keras_bert_impl.serving.task_settings import served_length, task_settings
from keras_bert_impl.tokenization.graph_tokenizer import GraphTokenizer
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from pipelines.tasks.questions.answer_ends import dropped_at_the_end
from pipelines.tasks.questions.graph_rows import QuestionPacker
from pipelines.tasks.questions.graph_spans import (
    GraphSpans,
    best_spans_in_graph,
    null_scores_in_graph,
)
from pipelines.tasks.questions.predictions import SURELY_NO_ANSWER, AnswerSettings
from pipelines.tasks.questions.question_rows import WindowSettings

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.opened_model import OpenedModel

ANSWERS = "answers"
"""The signature that gives the best answers instead of one."""

_LOGITS = ("start_logits", "end_logits")


@dataclass(frozen=True)
class ServingSettings:
    """How a served model answers.

    Attributes:
        windows: lengths and stride.
        answers: how answers are chosen.
        threshold: where there may be no answer, there is none if the null odds are greater.
    """

    windows: WindowSettings
    answers: AnswerSettings
    threshold: float = 0.0

    @classmethod
    def of(cls, config: "BertConfig", max_seq_length: int | None = None) -> Self:
        """What a model's configuration says; of what it does not, the original's defaults.

        Args:
            config: the model's.
            max_seq_length: the most tokens of a row; None is as in training.

        Raises:
            UserError: it is more than the model's positions, or leaves no room for a passage.
        """
        known = task_settings(config)
        positions = config.max_position_embeddings
        default = min(WindowSettings.max_seq_length, positions)
        length = served_length(config, max_seq_length, default)
        windows = _from(WindowSettings, {**known, "max_seq_length": length})
        if not windows.max_query_length + 3 < length:
            raise UserError(
                f"`max_seq_length={length}` must be more than the questions' "
                f"{windows.max_query_length} tokens and 3; give another number."
            )
        threshold = float(known.get("null_score_diff_threshold", 0.0))
        return cls(windows, _from(AnswerSettings, known), threshold)


def _from(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of the values that it knows."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


class ServedQuestions(ServedModel):
    """The signatures of a model for questions; each takes question and passage, strings [batch].

    `serving_default` gives answer, strings [batch], the passage's own characters, "" for no answer;
    start and end, int32 [batch], its position in characters of the passage (0, 0 for no answer);
    score, float32 [batch], the sum of the logits of the best answer's first and last token (where
    no answer is possible, a million less than no_answer_score); no_answer_score, float32 [batch],
    the sum of the logits at [CLS], which says nothing where questions always had an answer.

    `answers` gives the best answers instead, the best one first: answers, starts, ends and scores,
    [batch, n_best_size], and answer_counts, int32 [batch] (the rest is padding); no_answer_score as
    above; has_answer, bool [batch], says whether `serving_default` gives the best one or none.

    Passages of any length are read in windows, a few at a time.

    Args:
        opened: a model for questions with its vocabulary.
        settings: how it answers.
    """

    def __init__(self, opened: "OpenedModel", settings: ServingSettings) -> None:
        super().__init__(opened.model)
        model = opened.model
        tokenizer = graph_function(
            GraphTokenizer(opened.text, with_spans=True), text_specs("texts")
        )
        packer = QuestionPacker(tokenizer, opened.text.vocabulary, settings.windows)
        choice = settings.answers
        count = choice.n_best_size

        def logits(*inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
            return model(dict(zip(ENCODER_INPUTS, inputs, strict=True)), training=False)

        def answers(question: tf.Tensor, passage: tf.Tensor) -> dict[str, tf.Tensor]:
            rows = packer(question, passage)
            found = in_blocks(logits, rows.inputs, _LOGITS)
            starts, ends = (found[name] for name in _LOGITS)  # [rows, length] both
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
            has_answer = found["has_answer"]
            return {
                "answer": tf.where(has_answer, found["answers"][:, 0], ""),
                "start": tf.where(has_answer, found["starts"][:, 0], 0),
                "end": tf.where(has_answer, found["ends"][:, 0], 0),
                "score": found["scores"][:, 0],
                "no_answer_score": found["no_answer_score"],
            }

        self.add_signature("serving_default", answer, text_specs("question", "passage"))


def _texts(spans: GraphSpans, passage: tf.Tensor, count: int) -> dict[str, tf.Tensor]:
    """The answers as they stand in their passages, and where: [batch, count]."""
    of = tf.gather(passage, spans.question)  # [spans]
    before = tf.strings.substr(of, tf.zeros_like(spans.start), spans.start)
    starts = tf.strings.length(before, unit="UTF8_CHAR")
    texts = tf.strings.substr(of, spans.start, spans.end - spans.start)
    texts = tf.strings.regex_replace(texts, dropped_at_the_end(), "")
    ends = starts + tf.strings.length(texts, unit="UTF8_CHAR")
    dense = {
        name: _dense(spans.question, values, passage, count, padding)
        for name, values, padding in (
            ("answers", texts, ""),
            ("starts", starts, 0),
            ("ends", ends, 0),
        )
    }
    real = _dense(spans.question, tf.ones_like(starts), passage, count, 0)
    return {**dense, "answer_counts": tf.reduce_sum(real, axis=1)}


def _dense(
    question: tf.Tensor, values: tf.Tensor, batch: tf.Tensor, count: int, padding: Any
) -> tf.Tensor:
    """The first values of each question.

    Args:
        question: int64 [n], never falling.
        values: [n].
        batch: [questions].
        count: how many of each question.
        padding: stands where a question has fewer.

    Returns:
        [questions, count].
    """
    questions = tf.shape(batch, out_type=tf.int64)[0]
    ragged = tf.RaggedTensor.from_value_rowids(values, question, nrows=questions)
    return ragged.to_tensor(padding, shape=[None, count])
