"""Anybody's predictions, scored as the official scripts score them."""

from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from pipelines.metrics.question_answering import squad_v2_scores, trivia_scores
from pipelines.tables.lines import read_json
from pipelines.tasks.questions.files import WANTED, read_questions
from pipelines.tasks.questions.options import ScoreAnswersConfig
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.scores import ScoredAnswers, right_answers
from pipelines.tasks.questions.trivia import is_trivia, trivia_right_answers


def score_answers(config: ScoreAnswersConfig) -> dict[str, float]:
    """The official figures of a file of predictions, with intervals over articles.

    A question of SQuAD 1.1, KorQuAD or TriviaQA without a prediction counts as wrong, as in their
    scripts. TriviaQA's figures have no intervals, since its questions have no article.

    Raises:
        UserError: a file is not what it should be, or the predictions are for other questions.
    """
    content = read_json(config.data_file, WANTED)
    if is_trivia(content):
        return _score_trivia(config, content)
    negative = config.version_2_with_negative
    questions = list(read_questions(config.data_file, version_2_with_negative=negative))
    guesses = _read(config.predictions_file, str, "an answer")
    odds = dict[str, float]()
    if config.null_odds_file:
        odds = _read(config.null_odds_file, (int, float), "a number")
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
    return scored.figures_v2(config.null_score_diff_threshold)


def _score_trivia(config: ScoreAnswersConfig, content: Any) -> dict[str, float]:
    """TriviaQA's figures; one question without a prediction counts as wrong, all of them do not."""
    if config.version_2_with_negative or config.metric != "squad":
        raise UserError(
            f"{config.data_file}: is in TriviaQA's form, which has its own figures; leave out "
            "`version_2_with_negative` and `metric`."
        )
    right = trivia_right_answers(config.data_file, content)
    return trivia_scores(_read(config.predictions_file, str, "an answer"), right)


def _read(path: Path, kind: Any, what: str) -> dict[str, Any]:
    values = read_json(path, "a file of predictions")
    if not isinstance(values, dict):
        raise UserError(f"{path}: holds no JSON object; name a file with {what} for each id.")
    for name, value in values.items():
        if not isinstance(value, kind):
            raise UserError(f"{path}: question {name!r} has {value!r}, not {what}; mend the file.")
    return values


def _check_same(
    questions: list[Question], values: dict[str, Any], path: Path, *, complete: bool
) -> None:
    missing = [question for question in questions if question.identifier not in values]
    if missing and (complete or len(missing) == len(questions)):
        first = missing[0]
        raise UserError(
            f"{path}: has nothing for {len(missing)} of {len(questions)} questions, the first is "
            f"{first.identifier!r} (article {first.passage.article!r}); name the file made "
            "for these questions."
        )
