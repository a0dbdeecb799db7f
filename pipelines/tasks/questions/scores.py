"""The official figures of answered questions, with intervals, and the files of answers."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

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

_CLOSE = 1e-6  # sums in another order


def right_answers(question: Question) -> list[str]:
    """The right answers as the file has them; none where there is none."""
    return [] if question.is_impossible else [answer.text for answer in question.answers]


@dataclass(frozen=True)
class ScoredAnswers:
    """Answers to a labelled split, by the question's identifier.

    Guesses are the best answers, however likely no answer is; odds are 0 where there must be one.
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
        of_one = METRICS[metric]
        scores = [
            of_one(self.guesses[name], right) if name in self.guesses else Scores(0.0, 0.0)
            for name, right in self.right.items()
        ]
        figures = span_scores(self.guesses, self.right, of_one)
        return figures | self._intervals(scores, ("exact_match", "f1"))

    def figures_v2(self, threshold: float | None) -> dict[str, float]:
        """The figures of SQuAD 2.0 with intervals, at a threshold or that of the highest F1."""
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
    """Writes what the original writes, byte for byte, one question after the other."""
    names = [PREDICTIONS, N_BEST, *([NULL_ODDS] if version_2_with_negative else [])]
    paths = [folder / name for name in names]
    with ExitStack() as stack:
        files = [_JsonObject(stack.enter_context(open_whole(path))) for path in paths]
        for question, prediction in answered:
            answer = prediction.best(null_score_diff_threshold).text
            values = (answer, n_best(prediction.candidates), prediction.null_odds)
            for file, value in zip(files, values, strict=False):
                file.add(question.identifier, value)
        for file in files:
            file.end()
    return paths


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


class _JsonObject:
    """One JSON object written member by member, as `json.dumps(..., indent=4)` writes it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._separator = "{\n"

    def add(self, name: str, value: Any) -> None:
        """Writes a member."""
        member = json_text({name: value}, indent=4)
        self._file.write(self._separator + member.removeprefix("{\n").removesuffix("\n}"))
        self._separator = ",\n"

    def end(self) -> None:
        """Ends the object."""
        self._file.write("{}\n" if self._separator == "{\n" else "\n}\n")


ANSWER_TABLE, TRIVIA_PREDICTIONS = "answers.tsv", "triviaqa_predictions.json"

_COLUMNS = (
    *("f1", "exact_match", "probability", "question", "answer", "right_answers"),
    *("article", "id", "start", "end", "null_odds"),
)
_BETWEEN_ANSWERS = " | "


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
        texts = (
            question.text,
            question.passage.text[best.start : best.end],
            _BETWEEN_ANSWERS.join(dict.fromkeys(right)),
            question.passage.article,
            question.identifier,
        )
        figures = f"{100 * scores.f1:.2f}", f"{100 * scores.exact:.0f}", digits(probability)
        odds = "" if prediction.null_odds is None else digits(prediction.null_odds)
        cells = [*figures, *map(_as_unicode, texts), best.start, best.end, odds]
        rows.append(((scores.f1, -probability), cells))
    rows.sort(key=lambda row: row[0])  # stable
    return write_table(path, _COLUMNS, (cells for _, cells in rows))


def _as_unicode(text: str) -> str:
    """A text with a question mark for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


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


def write_trivia_predictions(folder: Path, best: Mapping[str, str]) -> Path:
    """Writes the file that TriviaQA's official script takes: an object of answers."""
    with open_whole(folder / TRIVIA_PREDICTIONS) as file:
        file.write(json_text(best, indent=4) + "\n")
    return folder / TRIVIA_PREDICTIONS
