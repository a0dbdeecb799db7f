"""The original's files, byte for byte."""

import json

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import appeared
from pipelines.tasks.questions.answers import AnswerSettings, Candidate, Prediction, predict
from pipelines.tasks.questions.files import Passage, Question
from pipelines.tasks.questions.scores import write_predictions
from tests.support.squad_golden import SETS, SquadGolden

KINDS = [
    ("plain", False),
    ("plain", True),
    ("rounded", False),
    ("rounded", True),
    ("nullboost", True),
]


@pytest.fixture(scope="module", params=SETS)
def golden(data_folder, request):
    found = SquadGolden(data_folder, request.param)
    return found, found.rows(training=False)


@pytest.mark.data
@pytest.mark.parametrize(("kind", "negative"), KINDS)
def test_files_are_the_originals_byte_for_byte(golden, tmp_path, kind, negative):
    recorded, rows = golden
    names = ("n_best_size", "max_answer_length")
    settings = AnswerSettings(*(recorded.summary[name] for name in names), negative)
    logits = recorded.logits(kind)
    predictions = predict(recorded.questions, rows, *logits, recorded.text, settings)
    answered = zip(recorded.questions, predictions, strict=True)
    paths = write_predictions(tmp_path, answered, version_2_with_negative=negative)
    files = recorded.prediction_files(kind, negative)
    assert {path.name for path in paths} == files.keys()
    for path in paths:
        assert path.read_bytes() == files[path.name], path.name


def test_files_are_what_json_writes(tmp_path):
    """Member by member, with an identifier and an answer that JSON has to escape."""
    passage = Passage("", "")
    candidates = [Candidate('"é"\n{}', 1.5, -0.25), Candidate("", 0.0, 0.0)]
    answered = [
        (Question(name, "", passage), Prediction(candidates, odds))
        for name, odds in (("x", 0.5), ('"ü', -1.5))
    ]
    paths = write_predictions(
        tmp_path, answered, version_2_with_negative=True, null_score_diff_threshold=0.25
    )
    contents = [path.read_text() for path in paths]
    values = [json.loads(content) for content in contents]
    assert [json.dumps(value, indent=4) + "\n" for value in values] == contents
    assert values[0] == {"x": "", '"ü': '"é"\n{}'}
    assert values[1]["x"][0]["text"] == '"é"\n{}'
    assert values[2] == {"x": 0.5, '"ü': -1.5}


def test_without_answers_each_file_is_an_empty_object(tmp_path):
    paths = write_predictions(tmp_path, [], version_2_with_negative=True)
    assert [path.read_text() for path in paths] == ["{}\n"] * 3


def test_no_file_is_replaced_before_all_are_written_and_the_predictions_come_last(tmp_path):
    def fails():
        yield Question("x", "", Passage("", "")), Prediction([Candidate("", 0.0, 0.0)], 0.0)
        raise UserError("stop")

    paths = write_predictions(tmp_path, [], version_2_with_negative=True)
    assert appeared[-3:] == paths[::-1]
    with pytest.raises(UserError, match="stop"):
        write_predictions(tmp_path, fails(), version_2_with_negative=True)
    assert [path.read_text() for path in paths] == ["{}\n"] * 3
