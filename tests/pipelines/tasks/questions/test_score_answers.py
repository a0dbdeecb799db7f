"""Files of predictions, whole and broken."""

import json

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import read_questions
from pipelines.tasks.questions.options import ScoreAnswersConfig
from pipelines.tasks.questions.scores import ScoredAnswers, score_answers
from tests.support.official_answers import read_json
from tests.support.squad_files import write_squad


@pytest.fixture
def scored(tmp_path):
    """Scores predictions that are made of the right answers by a function."""

    def score(change, negative=False, odds=None, **options):
        data = write_squad(tmp_path / "dev.json", 8, negative=negative)
        (article,) = read_json(data)["data"]
        right = {}
        for paragraph in article["paragraphs"]:
            (question,) = paragraph["qas"]
            right[question["id"]] = question["answers"][0]["text"] if question["answers"] else ""
        (tmp_path / "predictions.json").write_text(json.dumps(change(right)))
        if odds is not None:
            options["null_odds_file"] = tmp_path / "odds.json"
            values = odds if isinstance(odds, dict) else dict.fromkeys(right, odds)
            options["null_odds_file"].write_text(json.dumps(values))
        config = ScoreAnswersConfig(
            data_file=data,
            predictions_file=tmp_path / "predictions.json",
            version_2_with_negative=negative,
            **options,
        )
        return score_answers(config)

    return score


def test_right_answers_are_right_and_missing_ones_wrong(scored):
    assert scored(dict) == {"exact_match": 100.0, "f1": 100.0}
    assert scored(lambda right: {**right, "q0": "x"})["f1"] == 87.5
    assert scored(lambda right: {k: v for k, v in right.items() if k != "q0"})["f1"] == 87.5


def test_version_2_has_its_figures_and_with_odds_the_best_thresholds(scored):
    plain = scored(dict, negative=True)
    assert (plain["exact"], plain["NoAns_total"]) == (100.0, 4)
    assert "best_f1" not in plain
    with_odds = scored(dict, negative=True, odds=2.0)
    assert (with_odds["exact"], with_odds["HasAns_exact"]) == (50.0, 0.0)
    assert with_odds["best_f1"] == 100.0
    assert scored(dict, negative=True, odds=2, null_score_diff_threshold=3.0)["exact"] == 100.0


@pytest.mark.parametrize(
    ("guesses", "options", "sentence"),
    [
        (dict, {"negative": True, "odds": {"q0": 1.0}}, r"odds.json: has nothing for 7 of 8 "),
        (lambda _: {"q0": ""}, {"negative": True}, r"predictions.json: has nothing for 7 of 8 "),
        (lambda _: {"another": ""}, {}, r"predictions.json: has nothing for 8 of 8 .* 'q0' \(art"),
    ],
)
def test_a_file_made_for_other_questions_is_named(scored, guesses, options, sentence):
    with pytest.raises(UserError, match=sentence):
        scored(guesses, **options)


@pytest.mark.parametrize(("order", "best"), [("xy", 100.0), ("yx", 50.0)])
def test_equal_odds_count_in_the_order_of_their_file(tmp_path, order, best):
    """The official script sorts the file's odds, and looks at each of the equal ones in turn."""
    right = [{"text": "rained", "answer_start": 3}]
    questions = [
        {"id": "x", "question": "What?", "answers": right, "is_impossible": False},
        {"id": "y", "question": "Who?", "answers": [], "is_impossible": True},
    ]
    paragraphs = [{"context": "It rained.", "qas": questions}]
    files = {
        "data_file": {"data": [{"title": "Rain", "paragraphs": paragraphs}]},
        "predictions_file": {"x": "rained", "y": "rained"},
        "null_odds_file": {**dict.fromkeys(order, 1.0), "another": 0.0},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    paths = {name: tmp_path / name for name in files}
    figures = score_answers(ScoreAnswersConfig(version_2_with_negative=True, **paths))
    assert (figures["best_exact"], figures["best_f1"]) == (best, best)


def test_answers_alone_say_whether_a_question_has_one_wherever_they_stand(tmp_path):
    """The official scripts look neither at `is_impossible` nor at `answer_start`."""
    questions = [
        {"id": "x", "question": "What?", "answers": [{"text": "Rain"}], "is_impossible": True},
        {"id": "y", "question": "Who?", "answers": [], "is_impossible": False},
    ]
    paragraphs = [{"context": "Rain.", "qas": questions}]
    data, guesses = tmp_path / "dev.json", tmp_path / "predictions.json"
    data.write_text(json.dumps({"data": [{"title": "Rain", "paragraphs": paragraphs}]}))
    guesses.write_text(json.dumps({"x": "rain", "y": ""}))
    files = {"data_file": data, "predictions_file": guesses}
    figures = score_answers(ScoreAnswersConfig(version_2_with_negative=True, **files))
    assert (figures["HasAns_total"], figures["NoAns_total"], figures["exact"]) == (1, 1, 100.0)
    questions = read_questions(data, version_2_with_negative=True)
    read = zip(questions, map(guess, ["rain", ""]), strict=True)
    assert ScoredAnswers.of(read).figures_v2(0.0).items() >= figures.items()


def guess(text):
    return Prediction([Candidate(text, 0.0, 0.0), Candidate("", 0.0, 0.0)], -1.0)


def trivia_file(folder, domain, *answers):
    pages = "EntityPages" if domain == "Wikipedia" else "SearchResults"
    data = [
        {
            "QuestionId": f"q{number}",
            "Question": "Which?",
            pages: [{"Filename": "a.txt"}, {"Filename": "b.txt"}],
            "Answer": answer,
        }
        for number, answer in enumerate(answers)
    ]
    path = folder / f"{domain}.json"
    path.write_text(json.dumps({"Data": data, "Domain": domain}))
    return path


RAIN = {"NormalizedAliases": ["rain", "heavy rain"]}


@pytest.mark.parametrize(
    ("domain", "guesses", "exact"),
    [
        ("Wikipedia", {"q0": "The rain!", "q1": "snow"}, 50.0),
        ("Web", {"q0--a.txt": "rain", "q1--b.txt": "Heavy rain", "q0--b.txt": ""}, 50.0),
    ],
)
def test_a_file_of_triviaqa_has_its_own_figures(tmp_path, caplog, domain, guesses, exact):
    data = trivia_file(tmp_path, domain, RAIN, RAIN)
    (tmp_path / "guesses.json").write_text(json.dumps(guesses))
    config = ScoreAnswersConfig(data_file=data, predictions_file=tmp_path / "guesses.json")
    figures = score_answers(config)
    assert ("questions have no answer there" in caplog.text) == (domain == "Web")
    assert figures["exact_match"] == exact
    assert figures["common"] == len(guesses)


@pytest.mark.parametrize("answer", [None, {}, {"NormalizedAliases": None}])
def test_a_question_of_triviaqa_without_an_answer_is_named(tmp_path, answer):
    data = trivia_file(tmp_path, "Wikipedia", RAIN, answer)
    with pytest.raises(UserError, match="question 'q1' has no answer to evaluate by; name a file"):
        score_answers(ScoreAnswersConfig(data_file=data, predictions_file=data))
