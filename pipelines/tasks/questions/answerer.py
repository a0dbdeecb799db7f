"""Questions asked of a passage: the answer as it stands there, and the runners-up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from keras_bert_impl.checkpoints.task_settings import served_length
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields, utf16_offsets
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.records.rows import Rows
from pipelines.tasks.questions.answers import (
    SURELY_NO_ANSWER,
    AnswerSettings,
    BestSpans,
    dense_logits,
    find_best_spans,
    find_null_logits,
    visible_end,
)
from pipelines.tasks.questions.files import Passage, Question
from pipelines.tasks.questions.options import THRESHOLD, RunSquadConfig
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from pipelines.tasks.row_form import RowForm, single_rows, truncated_tokens

if TYPE_CHECKING:
    from keras_bert_impl.config import BertConfig

ANSWERS = "answers"
"""The signature that gives the best answers."""


@dataclass(frozen=True)
class ServingSettings:
    """How a served model answers; with null odds above the threshold there is no answer."""

    windows: WindowSettings
    answers: AnswerSettings
    threshold: float = 0.0

    @classmethod
    def of(cls, config: "BertConfig", max_seq_length: int | None = None) -> Self:
        """The settings in a model's configuration; the original's defaults where it has none."""
        known = RunSquadConfig.known(config)
        positions = config.max_position_embeddings
        default = min(WindowSettings.max_seq_length, positions)
        length = served_length(config, max_seq_length, default)
        known.setdefault("max_query_length", _question_tokens(length))
        windows = _from(WindowSettings, {**known, "max_seq_length": length})
        if not windows.max_query_length + 3 < length:
            raise UserError(
                f"`max_seq_length={length}` must be more than the questions' "
                f"{windows.max_query_length} tokens and 3; give another number."
            )
        threshold = known.get(THRESHOLD, 0.0)
        return cls(windows, _from(AnswerSettings, known), threshold)


def _question_tokens(length: int) -> int:
    """The most tokens of a question, where a model does not say it: the original's, if it fits."""
    usual = WindowSettings.max_query_length
    return usual if usual + 3 < length else (length - 3) // 2


def _from(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of the values that it knows."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


_LOGITS = ("start_logits", "end_logits")
_ONE = {
    "answer": "the passage's own characters; empty for no answer",
    "start": "the position of its first character",
    "end": "the position after its last one",
    "start_utf16": "the same in UTF-16 units, as JavaScript counts",
    "end_utf16": "the same in UTF-16 units",
    "score": "the sum of the logits of the best answer's first and last token",
    "no_answer_score": "the sum of the logits at [CLS]",
}
_BEST = {
    "answers": "the best answers, the best one first",
    "starts": "the position of the first character of each",
    "ends": "the position after the last one",
    "starts_utf16": "the same in UTF-16 units, as JavaScript counts",
    "ends_utf16": "the same in UTF-16 units",
    "scores": "of each, the sum of the logits of its first and last token",
    "answer_counts": "how many there are",
    "no_answer_score": "the sum of the logits at [CLS]",
    "has_answer": "whether the best one is the answer, or there is none",
}


class QuestionForm(RowForm):
    """A question and its passage to the answer, or to the best ones."""

    kind = "answer"
    inputs = (
        Input("question", about="what is asked"),
        Input("passage", about="the text that may answer it"),
    )
    model_outputs = token_outputs = _LOGITS
    has_windows = True  # of the passage; a long question is cut

    def __init__(self, model: KnownModel, settings: ServingSettings, *, best: bool) -> None:
        self.max_seq_length = settings.windows.max_seq_length
        self.most_tokens = settings.windows.max_query_length
        self.signature = ANSWERS if best else "serving_default"
        self.outputs: Mapping[str, str] = _BEST if best else _ONE
        self._settings, self._is_best = settings, best
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        fields = read_fields(self.inputs, instances)
        passages: dict[str, Passage] = {}
        questions = [
            Question(str(number), text, passages.setdefault(passage, Passage("", passage)))
            for number, (text, passage) in enumerate(zip(*fields.values(), strict=True))
        ]
        rows = question_rows(questions, self._tokenizer, self._settings.windows, training=False)
        return Prepared(single_rows(rows), (questions, rows), truncated_tokens(rows))

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        questions, rows = prepared.state
        found = self.joined(outputs)
        starts, ends = (dense_logits(rows, found[name]) for name in _LOGITS)
        choice = self._settings.answers
        spans = find_best_spans(rows, starts, ends, choice.n_best_size, choice.max_answer_length)
        null = find_null_logits(rows, starts, ends)
        return [
            self._answer(questions[number].passage.text, rows, number, spans, score)
            for number, score in enumerate((null.start + null.end).tolist())
        ]

    def _answer(
        self, passage: str, rows: Rows, number: int, spans: BestSpans, null: float
    ) -> Answer:
        first, last = spans.offsets[number : number + 2].tolist()
        own = range(first, min(last, first + self._settings.answers.n_best_size))
        places = [_place(rows, spans, span, passage) for span in own]
        scores = [float(spans.start_logit[span] + spans.end_logit[span]) for span in own]
        best = scores[0] if scores else null - SURELY_NO_ANSWER
        answered = null - best <= self._settings.threshold
        has_answer = answered or not self._settings.answers.version_2_with_negative
        if self._is_best:
            starts, ends = [start for start, _ in places], [end for _, end in places]
            return {
                "answers": [passage[start:end] for start, end in places],
                "starts": starts,
                "ends": ends,
                "starts_utf16": utf16_offsets(passage, starts),
                "ends_utf16": utf16_offsets(passage, ends),
                "scores": [_float32(score) for score in scores],
                "answer_counts": len(places),
                "no_answer_score": _float32(null),
                "has_answer": has_answer,
            }
        start, end = places[0] if has_answer and places else (0, 0)
        start_utf16, end_utf16 = utf16_offsets(passage, [start, end])
        return {
            "answer": passage[start:end],
            "start": start,
            "end": end,
            "start_utf16": start_utf16,
            "end_utf16": end_utf16,
            "score": _float32(best),
            "no_answer_score": _float32(null),
        }


def _place(rows: Rows, spans: BestSpans, span: int, passage: str) -> tuple[int, int]:
    begin = int(rows.offsets()[spans.row[span]])
    start = int(rows.tokens["text_start"][begin + int(spans.first[span])])
    end = int(rows.tokens["text_end"][begin + int(spans.last[span])])
    return start, visible_end(passage, start, end)


def _float32(number: Any) -> float:
    return float(np.float32(number))


def question_forms(model: KnownModel, max_seq_length: int | None) -> list[QuestionForm]:
    """The forms of a model for questions: the answer, and the best answers."""
    settings = ServingSettings.of(model.config, max_seq_length)
    return [QuestionForm(model, settings, best=best) for best in (False, True)]
