"""Scores of answered questions, held to what the official scripts said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.metrics.question_answering import (
    best_threshold,
    korquad_question,
    korquad_words,
    span_scores,
    squad_v1_question,
    squad_v2_scores,
    squad_words,
    trivia_scores,
    trivia_words,
)
from tests.support.official_answers import answers_of, golden_folder, read_json

SQUAD_FILES = {"squad_v1.1": "dev-v1.1.json.xz", "squad_v2.0": "dev-v2.0.json.xz"}


@pytest.fixture
def golden(data_folder):
    folder = golden_folder(data_folder, "qa_metrics")
    return lambda name: read_json(folder / f"{name}.json")


def squad_case(golden, data_folder, name):
    scores = golden(f"{name}_scores")
    path = data_folder / "squad" / SQUAD_FILES[name]
    return golden(f"{name}_predictions"), answers_of(path, scores["articles"]), scores["official"]


@pytest.mark.data
def test_squad_v2_gives_every_digit_of_the_official_script(golden, data_folder):
    predictions, answers, official = squad_case(golden, data_folder, "squad_v2.0")
    odds = golden("squad_v2.0_null_odds")
    assert squad_v2_scores(predictions, answers) == official["plain"]
    assert squad_v2_scores(predictions, answers, odds) == official["with_odds"]
    assert squad_v2_scores(predictions, answers, odds, 0.0) == official["with_odds_threshold_0"]


@pytest.mark.data
def test_squad_v1_gives_every_digit_of_the_official_script(golden, data_folder):
    predictions, answers, official = squad_case(golden, data_folder, "squad_v1.1")
    assert squad_v2_scores(predictions, answers) == official
    # The script of 1.1 differs only where an answer or a prediction has no word.
    scores = span_scores(predictions, answers, squad_v1_question)
    assert scores["exact_match"] == official["exact"]
    assert scores["f1"] == official["f1"]


@pytest.mark.data
def test_korquad_gives_every_digit_of_the_official_script(golden, data_folder):
    scores = golden("korquad_v1.0_scores")
    path = data_folder / "korean" / "KorQuAD_v1.0_dev.json.xz"
    answers = answers_of(path, scores["articles"])
    assert len(answers) == scores["questions"]
    found = span_scores(golden("korquad_v1.0_predictions"), answers, korquad_question)
    assert found == scores["official"]


@pytest.mark.data
def test_trivia_gives_every_digit_of_the_official_script(golden):
    scores = trivia_scores(golden("triviaqa_predictions"), golden("triviaqa_answers"))
    assert scores == golden("triviaqa_scores")["official"]


ANSWERS = {"x": ["the red house", "house"], "y": [], "z": ["1914"]}


def test_trivia_takes_aliases_and_what_people_said():
    answers = {
        "x": {"NormalizedAliases": ["river ob"], "HumanAnswers": ["Ob!"]},
        "y": {"NormalizedAliases": ["saint denis"]},
    }
    scores = trivia_scores({"x": "the ob", "other": "?"}, answers)
    assert scores == {
        "exact_match": 50.0,
        "f1": 50.0,
        "common": 1,
        "denominator": 2,
        "pred_len": 2,
        "gold_len": 2,
    }


def test_predictions_of_other_questions_are_refused():
    with pytest.raises(UserError, match=r"1 of 3 questions have no prediction .*'z'"):
        squad_v2_scores({"x": "", "y": ""}, ANSWERS)
    with pytest.raises(UserError, match=r"3 of 3 questions have no null odds"):
        squad_v2_scores(dict.fromkeys(ANSWERS, ""), ANSWERS, {})
    with pytest.raises(UserError, match="None of the 1 predictions"):
        span_scores({"other": "red"}, ANSWERS, squad_v1_question)
    with pytest.raises(UserError, match="no questions"):
        span_scores({}, {}, squad_v1_question)


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
    best, _ = best_threshold(right, predictions, odds, has_answer)
    # The official figure may lie between equal odds, where no threshold is: never below a real one.
    for threshold in (-9.0, *odds.values()):
        assert score_at(threshold, right, odds, has_answer) <= best + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_the_best_threshold_gives_its_score_where_all_odds_differ(questions):
    maps = as_maps([(*pair, number - 5.5) for number, pair in enumerate(questions)])
    right, predictions, odds, has_answer = maps
    best, at = best_threshold(right, predictions, odds, has_answer)
    threshold = at if at != 0.0 else -9.0  # 0.0: answer nothing
    assert best == pytest.approx(score_at(threshold, right, odds, has_answer))
