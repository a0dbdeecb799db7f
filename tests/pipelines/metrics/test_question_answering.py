"""Scores of answered questions, held to what the official scripts said."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.metrics.question_answering import (
    korquad_scores,
    squad_v1_scores,
    squad_v2_scores,
    trivia_scores,
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
    scores = squad_v1_scores(predictions, answers)
    assert scores["exact_match"] == official["exact"]
    assert scores["f1"] == official["f1"]


@pytest.mark.data
def test_korquad_gives_every_digit_of_the_official_script(golden, data_folder):
    scores = golden("korquad_v1.0_scores")
    path = data_folder / "korean" / "KorQuAD_v1.0_dev.json.xz"
    answers = answers_of(path, scores["articles"])
    assert len(answers) == scores["questions"]
    assert korquad_scores(golden("korquad_v1.0_predictions"), answers) == scores["official"]


@pytest.mark.data
def test_trivia_gives_every_digit_of_the_official_script(golden):
    scores = trivia_scores(golden("triviaqa_predictions"), golden("triviaqa_answers"))
    assert scores == golden("triviaqa_scores")["official"]


ANSWERS = {"x": ["the red house", "house"], "y": [], "z": ["1914"]}


def test_squad_v2_splits_questions_by_whether_they_have_an_answer():
    scores = squad_v2_scores({"x": "Red house", "y": "blue", "z": ""}, ANSWERS)
    assert scores == {
        "exact": 100 / 3,
        "f1": 100 / 3,
        "total": 3,
        "HasAns_exact": 50.0,
        "HasAns_f1": 50.0,
        "HasAns_total": 2,
        "NoAns_exact": 0.0,
        "NoAns_f1": 0.0,
        "NoAns_total": 1,
    }


def test_squad_v2_leaves_questions_above_the_threshold_unanswered():
    predictions = {"x": "house", "y": "blue", "z": "1914"}
    scores = squad_v2_scores(predictions, ANSWERS, {"x": -1.0, "y": 2.0, "z": 1.0}, 1.0)
    assert (scores["exact"], scores["best_exact"], scores["best_exact_thresh"]) == (100, 100, 1.0)
    strict = squad_v2_scores(predictions, ANSWERS, {"x": -1.0, "y": 2.0, "z": 1.0}, 0.0)
    assert (strict["HasAns_exact"], strict["NoAns_exact"]) == (50.0, 100.0)


def test_squad_v2_passes_over_answers_without_a_word():
    assert squad_v2_scores({"x": "red"}, {"x": ["The", "red"]})["exact"] == 100.0
    assert squad_v2_scores({"x": "a"}, {"x": ["The"]})["HasAns_f1"] == 100.0


def test_squad_v1_counts_a_question_without_a_prediction_as_wrong():
    predictions = {"x": "a red door"}
    assert squad_v1_scores(predictions, {"x": ["red house"], "z": ["1914"]}) == {
        "exact_match": 0.0,
        "f1": 25.0,
    }


def test_korquad_counts_characters():
    scores = korquad_scores({"x": "《무정》 의", "y": "none"}, {"x": ["'무정'"], "y": ["(없음)"]})
    assert scores == {"exact_match": 0.0, "f1": 40.0}


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
    for scores in (squad_v1_scores, korquad_scores):
        with pytest.raises(UserError, match="None of the 1 predictions"):
            scores({"other": "red"}, ANSWERS)
        with pytest.raises(UserError, match="no questions"):
            scores({}, {})
