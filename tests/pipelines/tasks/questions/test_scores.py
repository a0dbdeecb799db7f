"""Figures of answers; the official numbers are held by the metrics' own tests."""

import json

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.metrics.group_bootstrap import bootstrap_interval
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import Passage, PlacedText, Question
from pipelines.tasks.questions.options import ScoreAnswersConfig
from pipelines.tasks.questions.scores import ScoredAnswers, score_answers
from tests.support.squad_files import write_squad


def answered(*rows):
    """Rows of (right answer or None, guess, null odds), two of each article."""
    for number, (right, guess, odds) in enumerate(rows):
        placed = (PlacedText(right, 0),) if right else ()
        passage = Passage(f"article {number // 2}", "")
        question = Question(f"q{number}", "", passage, placed, right is None)
        yield question, Prediction([Candidate(guess, 0.0, 0.0), Candidate("", 0.0, 0.0)], odds)


def test_figures_have_intervals_over_articles():
    rows = [("red", "red", None), ("blue", "red", None), ("a b", "b c", None)] * 6
    figures = ScoredAnswers.of(answered(*rows)).figures("squad")
    f1 = [1.0, 0.0, 2 / 3] * 6
    assert figures["f1"] == pytest.approx(100 * np.mean(f1))
    interval = bootstrap_interval(f1, [f"article {number // 2}" for number in range(18)])
    assert (figures["f1_low"], figures["f1_high"]) == pytest.approx(
        (100 * interval.low, 100 * interval.high)
    )
    assert figures["exact_match_low"] < figures["exact_match"] < figures["exact_match_high"]


def test_a_question_without_an_answer_is_named_where_all_must_have_one():
    scored = ScoredAnswers.of(answered(("red", "red", 0.0), (None, "red", 0.0)))
    with pytest.raises(UserError, match=r"^question 'q1' \(article 'article 0'\) has no answer to"):
        scored.figures("squad")
    assert scored.figures_v2(0.0)["exact"] == 50.0


def test_the_threshold_lies_between_the_odds_of_two_questions():
    rows = [("red", "red", -3.0), ("red", "red", -1.0), (None, "red", 0.5), ("red", "x", 2.0)]
    scored = ScoredAnswers.of(answered(*rows))
    figures = scored.figures_v2(None)
    assert figures["null_score_diff_threshold"] == -0.25
    assert figures["f1"] == pytest.approx(figures["best_f1"]) == 75.0
    assert figures["best_f1_thresh"] == -1.0
    assert scored.figures_v2(1.0)["f1"] == 50.0


def test_where_it_is_best_to_answer_nothing_nothing_is_answered():
    rows = [(None, "red", -3.0), (None, "red", -1.0), ("red", "blue", 0.5)]
    figures = ScoredAnswers.of(answered(*rows)).figures_v2(None)
    assert figures["null_score_diff_threshold"] == -4.0
    assert figures["f1"] == pytest.approx(figures["best_f1"])


def test_questions_of_equal_odds_are_answered_together():
    """A threshold cannot divide them, as the official script does."""
    rows = [
        *(("red", "red", -5.0 - n) for n in range(10)),
        *((None, "red", 5.0 + n) for n in range(10)),
        *((right, "red", -1.0) for right in ("red", None)),
    ]
    figures = ScoredAnswers.of(answered(*rows)).figures_v2(None)
    assert figures["null_score_diff_threshold"] == -4.0
    assert figures["f1"] == pytest.approx(100 * 21 / 22)
    assert figures["best_f1"] == 100.0


@pytest.mark.parametrize(
    ("file", "value", "words"),
    [
        ("odds", "NaN", "is nan; it must be a number"),
        ("answers", "5", "is 5; it must be text"),
        ("answers", json.dumps("\x1b[31m" * 99)[:-1], "is not JSON"),
    ],
)
def test_predictions_of_another_type_are_refused_by_their_question(tmp_path, file, value, words):
    data = write_squad(tmp_path / "dev.json", count=1)
    files = {"odds": "0.5", "answers": '"It"', file: value}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(f'{{"q0": {content}}}')
    config = ScoreAnswersConfig(
        data_file=data,
        predictions_file=tmp_path / "answers.json",
        null_odds_file=tmp_path / "odds.json",
        version_2_with_negative=True,
    )
    with pytest.raises(UserError, match=rf"{file}\.json: .*{words}"):
        score_answers(config)
