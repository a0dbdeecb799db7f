"""The official figures of answered questions, with intervals, and the threshold of no answer.

They are those of a model's own answers, and of anybody's predictions (`score_answers`).
"""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import typed
from pipelines.metrics.group_bootstrap import bootstrap_interval
from pipelines.metrics.question_answering import (
    Scores,
    korquad_question,
    korquad_scores,
    squad_v1_question,
    squad_v1_scores,
    squad_v2_question,
    squad_v2_scores,
    threshold_between,
    trivia_scores,
)
from pipelines.tables.lines import read_json
from pipelines.tasks.questions.answers import Prediction
from pipelines.tasks.questions.files import WANTED, read_questions
from pipelines.tasks.questions.options import THRESHOLD, ScoreAnswersConfig
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.trivia import is_trivia, trivia_right_answers

_LOGGER = logging.getLogger(__name__)

METRICS = {
    "squad": (squad_v1_scores, squad_v1_question),
    "korquad": (korquad_scores, korquad_question),
}
"""The figures where every question has an answer: of all questions, and of one."""

_CLOSE = 1e-6  # sums in another order


def right_answers(question: Question) -> list[str]:
    """The right answers as the file has them; none where there is none."""
    return [] if question.is_impossible else [answer.text for answer in question.answers]


@dataclass(frozen=True)
class ScoredAnswers:
    """Answers to a labelled split, by the question's identifier.

    Attributes:
        guesses: the best answer, however likely no answer is.
        odds: how sure "no answer" is; 0 where there must be an answer.
    """

    right: dict[str, list[str]] = field(default_factory=dict)
    guesses: dict[str, str] = field(default_factory=dict)
    odds: dict[str, float] = field(default_factory=dict)
    articles: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answered: Iterable[tuple[Question, Prediction]]) -> "ScoredAnswers":
        """Reads all answers once."""
        scored = cls()
        for question, prediction in answered:
            name = question.identifier
            scored.right[name] = right_answers(question)
            scored.guesses[name] = prediction.best(math.inf).text
            scored.odds[name] = prediction.null_odds or 0.0
            scored.articles[name] = question.passage.article
        return scored

    def figures(self, metric: str) -> dict[str, float]:
        """The figures where every question has an answer, with their intervals."""
        self._check_some_are_right()
        of_all, of_one = METRICS[metric]
        scores = [
            of_one(self.guesses[name], right) if name in self.guesses else Scores(0.0, 0.0)
            for name, right in self.right.items()
        ]
        figures = of_all(self.guesses, self.right)
        return figures | self._intervals(scores, ("exact_match", "f1"))

    def figures_v2(self, threshold: float | None) -> dict[str, float]:
        """The figures of SQuAD 2.0, with their intervals.

        Args:
            threshold: a question with greater odds counts as unanswered; None finds the one with
                the highest F1.
        """
        self._check_some_are_right()
        if threshold is None:
            threshold = self._best_threshold()
        figures = squad_v2_scores(self.guesses, self.right, self.odds, threshold)
        scores = [
            squad_v2_question("" if self.odds[name] > threshold else self.guesses[name], right)
            for name, right in self.right.items()
        ]
        intervals = self._intervals(scores, ("exact", "f1"))
        return {**figures, **intervals, THRESHOLD: threshold}

    def guess_scores(self) -> dict[str, Scores]:
        """The scores of the guesses by the rules of SQuAD 2.0, before any threshold."""
        return {
            name: squad_v2_question(self.guesses[name], right) for name, right in self.right.items()
        }

    def _best_threshold(self) -> float:
        """The threshold with the highest F1, in the middle between two questions' odds.

        The official script names the odds of a question themselves, where the last digit of a logit
        would decide about that question.
        """
        odds = self.odds.values()
        best = squad_v2_scores(self.guesses, self.right, self.odds)
        threshold = threshold_between(odds, best["best_f1_thresh"])
        reached = squad_v2_scores(self.guesses, self.right, self.odds, threshold)["f1"]
        # The script's threshold is 0 where it is best to answer nothing.
        return threshold if reached > best["best_f1"] - _CLOSE else min(odds) - 1.0

    def _intervals(self, scores: Sequence[Scores], names: Sequence[str]) -> dict[str, float]:
        """The bounds of 95 % of the samples of articles, in percent."""
        bounds = dict[str, float]()
        for name, values in zip(names, zip(*scores, strict=True), strict=True):
            if interval := bootstrap_interval(values, list(self.articles.values())):
                bounds |= {f"{name}_low": 100 * interval.low, f"{name}_high": 100 * interval.high}
        return bounds

    def _check_some_are_right(self) -> None:
        if not any(self.right.values()):
            raise UserError(
                "`predict_file` has no answers to evaluate by; name a file with answers."
            )


def score_answers(config: ScoreAnswersConfig) -> dict[str, float]:
    """The official figures of a file of predictions, with intervals over articles.

    A question of SQuAD 1.1, KorQuAD or TriviaQA without a prediction counts as wrong, as in their
    scripts; the log says how many there are, and how many answers a threshold takes away.
    TriviaQA's figures have no intervals, since its questions have no article.
    """
    encoding = config.text_encoding
    content = read_json(config.data_file, WANTED, encoding)
    if is_trivia(content):
        return _score_trivia(config, content)
    negative = config.version_2_with_negative
    questions = list(
        read_questions(config.data_file, version_2_with_negative=negative, encoding=encoding)
    )
    guesses = encoding.composed_value(_read(config.predictions_file, str, "an answer"))
    odds = dict[str, float]()
    if config.null_odds_file:
        odds = _read(config.null_odds_file, float, "a number")
        _check_same(questions, odds, config.null_odds_file, complete=True)
    _check_same(questions, guesses, config.predictions_file, complete=negative)
    scored = ScoredAnswers(
        {question.identifier: right_answers(question) for question in questions},
        guesses,
        # The official script adds equal odds in the order of their file.
        odds or {question.identifier: 0.0 for question in questions},
        {question.identifier: question.passage.article for question in questions},
    )
    if not negative:
        return scored.figures(config.metric)
    if not odds:
        intervals = scored.figures_v2(0.0)  # no odds are above the threshold
        plain = squad_v2_scores(guesses, scored.right)
        return plain | {name: x for name, x in intervals.items() if name.endswith(("low", "high"))}
    limit = config.null_score_diff_threshold
    answered = [question.identifier for question in questions if guesses[question.identifier]]
    if taken := sum(odds[name] > limit for name in answered):
        _LOGGER.warning(
            "%s: %d of %d answers count as no answer, since their odds are above "
            "`null_score_diff_threshold=%s`.",
            *(config.null_odds_file, taken, len(answered), limit),
        )
    return scored.figures_v2(limit)


def _score_trivia(config: ScoreAnswersConfig, content: Any) -> dict[str, float]:
    """TriviaQA's figures; one question without a prediction counts as wrong, all of them do not."""
    if config.version_2_with_negative or config.metric != "squad":
        raise UserError(
            f"{config.data_file}: is in TriviaQA's form, which has its own figures; leave out "
            "`version_2_with_negative` and `metric`."
        )
    right = trivia_right_answers(config.data_file, content)
    guesses = _read(config.predictions_file, str, "an answer")
    figures = trivia_scores(guesses, right)
    _tell_of_missing(config.predictions_file, len(right.keys() - guesses), len(right))
    return figures


def _read(path: Path, kind: type, what: str) -> dict[str, Any]:
    values = read_json(path, "a file of predictions")
    if not isinstance(values, dict):
        raise UserError(f"{path}: holds no JSON object; name a file with {what} for each id.")
    return typed(values, dict[str, kind], str(path), f"name a file with {what} for each id")  # type: ignore[valid-type]


def _check_same(
    questions: list[Question], values: dict[str, Any], path: Path, *, complete: bool
) -> None:
    missing = [question for question in questions if question.identifier not in values]
    if missing and (complete or len(missing) == len(questions)):
        first = missing[0]
        raise UserError(
            f"{path}: has nothing for {len(missing)} of {len(questions)} questions, the first is "
            f"{shown(first.identifier)} (article {shown(first.passage.article)}); name the file "
            f"made "
            "for these questions."
        )
    _tell_of_missing(path, len(missing), len(questions))


def _tell_of_missing(path: Path, missing: int, questions: int) -> None:
    if missing:
        _LOGGER.warning(
            "%s: %d of %d questions have no answer there and count as wrong.",
            *(path, missing, questions),
        )
