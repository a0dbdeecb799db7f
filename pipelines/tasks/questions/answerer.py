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
from pipelines.tasks.questions.answers import (
    SURELY_NO_ANSWER,
    AnswerSettings,
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
        usual = WindowSettings.max_query_length
        fitting = usual if usual + 3 < length else (length - 3) // 2
        known.setdefault("max_query_length", fitting)
        windows = settings_of(WindowSettings, {**known, "max_seq_length": length})
        if not windows.max_query_length + 3 < length:
            raise UserError(
                f"`max_seq_length={length}` must be more than the questions' "
                f"{windows.max_query_length} tokens and 3; give another number."
            )
        return cls(windows, settings_of(AnswerSettings, known), known.get(THRESHOLD, 0.0))


def settings_of(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of the values that it knows."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


LOGITS = ("start_logits", "end_logits")
PLACES: Mapping[str, tuple[str, Any]] = {
    "answers": ("answer", ""),
    "starts": ("start", 0),
    "ends": ("end", 0),
    "starts_utf16": ("start_utf16", 0),
    "ends_utf16": ("end_utf16", 0),
}
"""What is given of each of the best answers; how it is called of the best one, and is of none."""

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
    model_outputs = token_outputs = LOGITS
    has_windows = True  # of the passage; a long question is cut

    def __init__(self, model: KnownModel, settings: ServingSettings, *, best: bool) -> None:
        self.max_seq_length = settings.windows.max_seq_length
        self.most_tokens = settings.windows.max_query_length
        self.most_answers = settings.answers.n_best_size
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
        start, end = (dense_logits(rows, found[name]) for name in LOGITS)
        choice = self._settings.answers
        spans = find_best_spans(rows, start, end, choice.n_best_size, choice.max_answer_length)
        null = find_null_logits(rows, start, end)
        first, last = spans.tokens(rows)
        starts, ends = rows.tokens["text_start"][first], rows.tokens["text_end"][last]
        columns = starts, ends, spans.start_logit + spans.end_logit
        answers = []
        for number, score in enumerate(null.sum(axis=0).tolist()):
            own = slice(*spans.offsets[number : number + 2])
            best = (column[own][: choice.n_best_size].tolist() for column in columns)
            answers.append(self._answer(questions[number].passage.text, score, *best))
        return answers

    def _answer(
        self, passage: str, null: float, starts: list[int], ends: list[int], scores: list[float]
    ) -> Answer:
        ends = [visible_end(passage, *place) for place in zip(starts, ends, strict=True)]
        values: tuple[list[Any], ...] = (
            [passage[start:end] for start, end in zip(starts, ends, strict=True)],
            *(starts, ends, utf16_offsets(passage, starts), utf16_offsets(passage, ends)),
        )
        found = dict(zip(PLACES, values, strict=True))
        score = scores[0] if scores else null - SURELY_NO_ANSWER
        answered = null - score <= self._settings.threshold
        has_answer = answered or not self._settings.answers.version_2_with_negative
        if self._is_best:
            return {
                **found,
                "scores": np.array(scores, np.float32).tolist(),
                "answer_counts": len(scores),
                "no_answer_score": _float32(null),
                "has_answer": has_answer,
            }
        best = {
            name: found[several][0] if has_answer and scores else nothing
            for several, (name, nothing) in PLACES.items()
        }
        return {**best, "score": _float32(score), "no_answer_score": _float32(null)}


def _float32(number: float) -> float:
    return float(np.float32(number))
