"""Answers to questions out of a model's logits, as the original chooses them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from numpy.typing import ArrayLike

from keras_bert_impl.tokenization.text_settings import Casing, TextSettings
from pipelines.records.rows import Rows
from pipelines.tasks.questions.answer_ends import visible_end
from pipelines.tasks.questions.original_text import find_original_text, join_tokens
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.spans import BestSpans, find_best_spans, find_null_logits

SURELY_NO_ANSWER = 1_000_000.0
"""The null odds where no span is possible; the original has none, and fails."""


@dataclass(frozen=True)
class AnswerSettings:
    """How answers are chosen.

    Attributes:
        n_best_size: how many answers to give for each question.
        max_answer_length: the most tokens of an answer.
        version_2_with_negative: whether there may be no answer.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False


class Candidate(NamedTuple):
    """One of the best answers to a question.

    Attributes:
        text: as the original writes it, words joined with single blanks; "" is no answer.
        start_logit: of its first token.
        end_logit: of its last token.
        start: the position in the passage of its first character.
        end: the position after its last character; `passage.text[start:end]` is the answer as it
            stands in the text. Both are 0 for no answer.
    """

    text: str
    start_logit: float
    end_logit: float
    start: int = 0
    end: int = 0

    @property
    def score(self) -> float:
        """What the answers are ordered by."""
        return self.start_logit + self.end_logit


class Prediction(NamedTuple):
    """What a model answers to a question.

    Attributes:
        candidates: the best answers, the best one first; at least one. No answer is one of them
            where there may be none.
        null_odds: how much surer the model is of no answer than of the best answer; None where
            there must be an answer.
    """

    candidates: Sequence[Candidate]
    null_odds: float | None = None

    def best(self, null_score_diff_threshold: float = 0.0) -> Candidate:
        """The answer: no answer where the null odds are above the threshold."""
        if self.null_odds is None:
            return self.candidates[0]
        unanswered = self.null_odds > null_score_diff_threshold
        wanted = (x for x in self.candidates if bool(x.text) != unanswered)
        return next(wanted, self.candidates[0])


def predict(
    questions: Sequence[Question],
    rows: Rows,
    start_logits: ArrayLike,
    end_logits: ArrayLike,
    text: TextSettings,
    settings: AnswerSettings,
) -> list[Prediction]:
    """Answers questions by a model's logits.

    Args:
        questions: some questions.
        rows: theirs, from `question_rows`.
        start_logits: float32 [rows, length], with padding; `dense_logits` makes them.
        end_logits: as `start_logits`.
        text: the model's vocabulary and casing.
        settings: how answers are chosen.

    Returns:
        One prediction a question. A question for which no span is possible is answered "empty", as
        in the original, or, where there may be no answer (and the original fails), with none.
    """
    limits = settings.n_best_size, settings.max_answer_length
    spans = find_best_spans(rows, start_logits, end_logits, *limits)
    texts = _SpanTexts(rows, spans, text)
    if not settings.version_2_with_negative:
        return [
            Prediction(_best(texts.of(number, question), settings.n_best_size) or [_EMPTY])
            for number, question in enumerate(questions)
        ]
    null = find_null_logits(rows, start_logits, end_logits)
    return [
        _with_null(texts.of(number, question), Candidate("", start, end), settings.n_best_size)
        for number, (question, start, end) in enumerate(
            zip(questions, null.start.tolist(), null.end.tolist(), strict=True)
        )
    ]


_EMPTY = Candidate("empty", 0.0, 0.0)


def _best(candidates: Iterator[Candidate], count: int) -> list[Candidate]:
    """The first candidates of which no two have the same text."""
    best = dict[str, Candidate]()
    for candidate in candidates:
        best.setdefault(candidate.text, candidate)
        if len(best) == count:
            break
    return list(best.values())


def _with_null(candidates: Iterator[Candidate], null: Candidate, count: int) -> Prediction:
    """A prediction with no answer in its place, or after the others where they are better."""
    answers = _best(candidates, count)
    better = sum(answer.score >= null.score for answer in answers)
    kept = [*answers[:better], null, *answers[better:]]
    if better < count:  # no answer is one of the `count` best, so that one answer less is
        kept = kept[:count]
    first = next((x for x in kept if x.text), None)
    odds = null.score - first.start_logit - first.end_logit if first else SURELY_NO_ANSWER
    return Prediction(kept, odds)


class _SpanTexts:
    """What the best spans say, made only for the spans that are looked at."""

    def __init__(self, rows: Rows, spans: BestSpans, text: TextSettings) -> None:
        begins = rows.offsets()[spans.row]
        self._tokens = text.vocabulary.tokens
        self._casing = Casing(text.do_lower_case, text.strip_accents)
        self._ids = rows.tokens["input_ids"]
        self._starts, self._ends = rows.tokens["text_start"], rows.tokens["text_end"]
        self._first, self._last = begins + spans.first, begins + spans.last
        self._spans = spans

    def of(self, number: int, question: Question) -> Iterator[Candidate]:
        """The candidates of one question, the best one first."""
        words, word_of = question.passage.words, question.passage.word_of_character
        for span in range(*self._spans.offsets[number : number + 2].tolist()):
            first, last = int(self._first[span]), int(self._last[span])
            start, end = int(self._starts[first]), int(self._ends[last])
            tokens = [self._tokens[x] for x in self._ids[first : last + 1].tolist()]
            touched = words[word_of[start] : word_of[self._starts[last]] + 1]
            yield Candidate(
                find_original_text(join_tokens(tokens), " ".join(touched), self._casing),
                float(self._spans.start_logit[span]),
                float(self._spans.end_logit[span]),
                start,
                visible_end(question.passage.text, start, end),
            )
