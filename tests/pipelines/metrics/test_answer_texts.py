"""What counts when two answers are compared."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.answer_texts import (
    best_scores,
    korquad_words,
    shared_f1,
    squad_words,
    trivia_words,
)

WORDS = st.lists(st.sampled_from("abcd"), max_size=6)


@pytest.mark.parametrize(
    ("text", "squad", "trivia", "korquad"),
    [
        ("The A-Team", ["ateam"], ["team"], ["the", "ateam"]),
        ("an_apple", ["anapple"], ["apple"], ["anapple"]),
        ("‘it’s’", ["‘it’s’"], ["it", "s"], ["it", "s"]),
        ("half\u00a0(1/2)", ["half", "12"], ["half", "1", "2"], ["half", "12"]),
        ("theatre, then", ["theatre", "then"], ["theatre", "then"], ["theatre", "then"]),
        ("", [], [], []),
    ],
)
def test_each_data_set_has_rules_of_its_own(text, squad, trivia, korquad):
    assert (squad_words(text), trivia_words(text), korquad_words(text)) == (squad, trivia, korquad)


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_one_for_equal_bags_only(first, second):
    value = shared_f1(first, second)
    assert value == pytest.approx(shared_f1(second, first))
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) == bool(first and Counter(first) == Counter(second))


def test_a_prediction_has_the_scores_of_its_best_answers():
    scores = best_scores("red old house", ["red house", "red", "blue"], squad_words)
    assert scores == (0.0, 0.8)
    assert best_scores("red", [], squad_words) == (0.0, 0.0)
