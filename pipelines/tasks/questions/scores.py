"""The official figures of answered questions, with intervals, and the files of answers."""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text, typed
from pipelines.metrics.group_bootstrap import bootstrap_interval
from pipelines.metrics.question_answering import (
    Scores,
    korquad_question,
    span_scores,
    squad_v1_question,
    squad_v2_question,
    squad_v2_scores,
    threshold_between,
    trivia_scores,
)
from pipelines.tables.lines import read_json
from pipelines.tables.writing import digits, write_table
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import (
    BETWEEN,
    WANTED,
    Question,
    counts_questions,
    is_trivia,
    read_questions,
    trivia_right_answers,
)
from pipelines.tasks.questions.options import THRESHOLD, ScoreAnswersConfig

_LOGGER = logging.getLogger(__name__)


METRICS = {"squad": squad_v1_question, "korquad": korquad_question}
"""The figures of one question, where every question has an answer."""

_CLOSE = 1e-9  # sums in another order


def right_answers(question: Question) -> list[str]:
    """The right answers as the file has them: as for the official script, they alone decide."""
    return [answer.text for answer in question.answers]


@dataclass(frozen=True)
class ScoredAnswers:
    """Answers to a labelled split, by the question's identifier.

    Guesses are the best answers, however likely no answer is; odds are None where no file
    gave them.
    """

    right: dict[str, list[str]]
    guesses: dict[str, str]
    odds: dict[str, float] | None
    articles: dict[str, str]

    @classmethod
    def of(cls, answered: Iterable[tuple[Question, Prediction]]) -> "ScoredAnswers":
        """Reads all answers once."""
        odds = dict[str, float]()
        scored = cls({}, {}, odds, {})
        for question, prediction in answered:
            name = question.identifier
            scored.right[name] = right_answers(question)
            scored.guesses[name] = prediction.best(math.inf).text
            odds[name] = prediction.null_odds or 0.0
            scored.articles[name] = question.passage.article
        return scored

    def figures(self, metric: str) -> dict[str, float]:
        """The figures where every question has an answer, with their intervals."""
        self._check_have_answers(all)
        of_one = METRICS[metric]
        scores = [
            of_one(self.guesses[name], right) if name in self.guesses else Scores(0.0, 0.0)
            for name, right in self.right.items()
        ]
        figures = span_scores(self.guesses, self.right, of_one)
        return figures | self._intervals(scores, ("exact_match", "f1"))

    def figures_v2(self, threshold: float | None) -> dict[str, float]:
        """The figures of SQuAD 2.0 with intervals, at a threshold or that of the highest F1."""
        self._check_have_answers(any)
        if threshold is None:
            threshold = self._best_threshold()
        figures = squad_v2_scores(self.guesses, self.right, self.odds, threshold)
        taken = {name for name, odds in (self.odds or {}).items() if odds > threshold}
        scores = [
            squad_v2_question("" if name in taken else self.guesses[name], right)
            for name, right in self.right.items()
        ]
        known = {THRESHOLD: threshold} if self.odds else {}
        return {**figures, **self._intervals(scores, ("exact", "f1")), **known}

    def _best_threshold(self) -> float:
        """The threshold with the highest F1, in the middle between two questions' odds.

        The official script names the odds of a question themselves, where the last digit of a logit
        would decide about that question, and may divide questions of equal odds.
        """
        odds, gains = self.odds or {}, defaultdict[float, float](float)  # of answering, by odds
        for name, right in self.right.items():
            f1 = squad_v2_question(self.guesses[name], right).f1
            gains[odds[name]] += f1 - (not right)
        score = best = 0.0
        threshold = min(odds.values()) - 1.0  # nothing is answered
        for at in sorted(gains):
            score += gains[at]
            if score > best + _CLOSE:
                best, threshold = score, threshold_between(odds.values(), at)
        return threshold

    def _intervals(self, scores: Sequence[Scores], names: Sequence[str]) -> dict[str, float]:
        """The bounds of 95 % of the samples of articles, in percent."""
        bounds = dict[str, float]()
        for name, values in zip(names, zip(*scores, strict=True), strict=True):
            if interval := bootstrap_interval(values, list(self.articles.values())):
                bounds |= {f"{name}_low": 100 * interval.low, f"{name}_high": 100 * interval.high}
        return bounds

    def _check_have_answers(self, enough: Callable[[Iterable[Any]], bool]) -> None:
        if not enough(self.right.values()):
            first = next(name for name, right in self.right.items() if not right)
            raise UserError(
                f"question {shown(first)} (article {shown(self.articles[first])}) has no answer to "
                "evaluate by; name a file with answers."
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
    odds = None
    if config.null_odds_file:
        odds = _read(config.null_odds_file, float, "a number")
        _check_same(questions, odds, config.null_odds_file, complete=True)
    _check_same(questions, guesses, config.predictions_file, complete=negative)
    right = {question.identifier: right_answers(question) for question in questions}
    articles = {question.identifier: question.passage.article for question in questions}
    scored, limit = ScoredAnswers(right, guesses, odds, articles), config.null_score_diff_threshold
    figures = scored.figures_v2(limit) if negative else scored.figures(config.metric)
    answered = [name for name in right if guesses.get(name)]
    if odds and (taken := sum(odds[name] > limit for name in answered)):
        _LOGGER.warning(
            "%s: %d of %d answers count as no answer, since their odds are above "
            "`null_score_diff_threshold=%s`.",
            *(config.null_odds_file, taken, len(answered), limit),
        )
    return figures


def _score_trivia(config: ScoreAnswersConfig, content: Any) -> dict[str, float]:
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
    remedy = f"name a file with {what} for each id"
    return typed(values, dict[str, kind], str(path), remedy)  # type: ignore[valid-type]


def _check_same(
    questions: Sequence[Question], values: Mapping[str, Any], path: Path, *, complete: bool
) -> None:
    missing = [question for question in questions if question.identifier not in values]
    if missing and (complete or len(missing) == len(questions)):
        first = missing[0]
        raise UserError(
            f"{path}: has nothing for {len(missing)} of {len(questions)} questions, the first is "
            f"{shown(first.identifier)} (article {shown(first.passage.article)}); name the file "
            "made for these questions."
        )
    _tell_of_missing(path, len(missing), len(questions))


def _tell_of_missing(path: Path, missing: int, questions: int) -> None:
    if missing:
        _LOGGER.warning(
            "%s: %d of %d questions have no answer there and count as wrong.",
            *(path, missing, questions),
        )


PREDICTIONS, N_BEST, NULL_ODDS = "predictions.json", "nbest_predictions.json", "null_odds.json"


def write_predictions(
    folder: Path,
    answered: Iterable[tuple[Question, Prediction]],
    *,
    version_2_with_negative: bool,
    null_score_diff_threshold: float = 0.0,
) -> list[Path]:
    """Writes what the original writes, byte for byte, one question after the other.

    No file is replaced before all are written, and the predictions are replaced last.
    """
    names = [PREDICTIONS, N_BEST, *([NULL_ODDS] if version_2_with_negative else [])]
    paths, separator = [folder / name for name in names], "{"
    with ExitStack() as stack:
        files = [stack.enter_context(open_whole(path)) for path in paths]
        for question, prediction in answered:
            answer = prediction.best(null_score_diff_threshold).text
            values = (answer, n_best(prediction.candidates), prediction.null_odds)
            for file, value in zip(files, values, strict=False):
                member = json_text({question.identifier: value}, indent=4)
                file.write(separator + member.removeprefix("{").removesuffix("\n}"))
            separator = ","
        for file in files:
            file.write("{}\n" if separator == "{" else "\n}\n")
            file.flush()
    return paths


def write_object(path: Path, values: Mapping[str, Any]) -> Path:
    """Writes an object as the official scripts read it."""
    with open_whole(path) as file:
        file.write(json_text(values, indent=4) + "\n")
    return path


def n_best(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The candidates as the original's file has them, with the softmax of their scores."""
    highest = max(candidate.score for candidate in candidates)
    weights = [math.exp(candidate.score - highest) for candidate in candidates]
    total = 0.0
    for weight in weights:  # one after the other: `sum` is more exact in newer versions of Python
        total += weight
    return [
        {
            "text": candidate.text,
            "probability": weight / total,
            "start_logit": candidate.start_logit,
            "end_logit": candidate.end_logit,
        }
        for candidate, weight in zip(candidates, weights, strict=True)
    ]


ANSWER_TABLE, TRIVIA_PREDICTIONS = "answers.tsv", "triviaqa_predictions.json"

_COLUMNS = (
    *("f1", "exact_match", "probability", "question", "answer", "right_answers"),
    *("article", "id", "start", "end", "null_odds"),
)


def write_answer_table(
    path: Path,
    answered: Iterable[tuple[Question, Prediction]],
    threshold: float,
    score: Callable[[str, Sequence[str]], Scores],
) -> Path:
    """Writes all answers as a table, the hardest mistakes first: the surest ones of the worst.

    `answer` has the passage's own characters, those from `start` to `end`; what is scored is the
    original's text, which may have more.
    """
    rows = []
    for question, prediction in answered:
        best, right = prediction.best(threshold), right_answers(question)
        scores = score(best.text, right)
        rank = prediction.candidates.index(best)
        probability = n_best(prediction.candidates)[rank]["probability"]
        odds = "" if prediction.null_odds is None else digits(prediction.null_odds)
        cells = (
            f"{100 * scores.f1:.2f}",
            f"{100 * scores.exact:.0f}",
            digits(probability),
            question.text,
            question.passage.text[best.start : best.end],
            " | ".join(dict.fromkeys(right)),
            question.passage.article,
            question.identifier,
            best.start,
            best.end,
            odds,
        )
        rows.append(((scores.f1, -probability), cells))
    rows.sort(key=lambda row: row[0])  # stable
    return write_table(path, _COLUMNS, (cells for _, cells in rows))


def best_of_documents(
    content: Any, answered: Iterable[tuple[Question, Prediction]]
) -> dict[str, str]:
    """The surest answer of each question over all its documents, by what the figures count."""
    whole, best = counts_questions(content), dict[str, tuple[float, str]]()
    for question, prediction in answered:
        name = question.identifier
        key, guess = name.partition(BETWEEN)[0] if whole else name, prediction.best(math.inf)
        score = guess.score if guess.end else -math.inf  # a document without any span
        if key not in best or score > best[key][0]:
            best[key] = score, guess.text
    return {key: text for key, (_, text) in best.items()}
