"""Figures over all thresholds, held to trying every threshold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.no_answer import best_threshold, precision_recall

QUESTIONS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from([-1.5, 0.0, 0.25, 3.0])), min_size=1
)


def as_maps(questions):
    """Scores, predictions, odds and answerability of (has an answer, guessed rightly, odds)."""
    names = [str(number) for number in range(len(questions))]
    has_answer = dict(zip(names, [has for has, _, _ in questions], strict=True))
    right = dict(zip(names, [float(right) for _, right, _ in questions], strict=True))
    # Of a question without an answer, only giving no answer is right.
    predictions = {x: "" if right[x] and not has_answer[x] else "text" for x in names}
    odds = dict(zip(names, [odds for _, _, odds in questions], strict=True))
    return right, predictions, odds, has_answer


def score_at(threshold, right, odds, has_answer):
    values = [right[x] if odds[x] <= threshold else float(not has_answer[x]) for x in right]
    return 100 * sum(values) / len(values)


@given(QUESTIONS)
def test_no_threshold_is_better_than_the_best(questions):
    right, predictions, odds, has_answer = as_maps(questions)
    best = best_threshold(right, predictions, odds, has_answer)
    # The official figure may lie between equal odds, where no threshold is: never below a real one.
    for threshold in (-9.0, *odds.values()):
        assert score_at(threshold, right, odds, has_answer) <= best.score + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_the_best_threshold_gives_its_score_where_all_odds_differ(questions):
    maps = as_maps([(*pair, number - 5.5) for number, pair in enumerate(questions)])
    right, predictions, odds, has_answer = maps
    best = best_threshold(right, predictions, odds, has_answer)
    threshold = best.threshold if best.threshold != 0.0 else -9.0  # 0.0: answer nothing
    assert best.score == pytest.approx(score_at(threshold, right, odds, has_answer))


def test_the_curve_ends_where_everything_is_answered():
    right, _, odds, has_answer = as_maps([(True, True, 0.0), (True, False, 3.0), (False, 0, 3.0)])
    curve = precision_recall(right, odds, has_answer)
    assert curve.precision == [1.0, 1.0, pytest.approx(1 / 3)]
    assert curve.recall == [0.0, 0.5, 0.5]
    assert curve.average == 50.0


def test_questions_without_answers_have_a_curve_at_no_recall():
    curve = precision_recall({"x": 1.0}, {"x": 0.5}, {"x": False})
    assert (curve.recall, curve.average) == ([0.0, 0.0], 0.0)
