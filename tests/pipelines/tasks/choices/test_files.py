"""Files of endings: SWAG's columns and JSON lines; what is refused, by its line."""

import json
import logging
import math

import pytest

from keras_bert_impl.errors import UserError
from pipelines.corpora.encodings import UTF_8
from pipelines.tasks.choices.files import has_labels, read_choices
from tests.support.choice_files import made_choices, write_json_lines, write_swag


def read(path, *, labelled=True, num_choices=None):
    return list(read_choices(path, labelled=labelled, num_choices=num_choices))


def test_swags_columns(tmp_path):
    found = read(write_swag(tmp_path / "train.csv", 5))
    for number, (choice, made) in enumerate(zip(found, made_choices(5), strict=True)):
        context, endings, label = made
        assert (choice.context, choice.label) == (context, label)
        assert choice.endings == tuple(f"the {ending}" for ending in endings)
        assert (choice.identifier, choice.line) == (f"row{number}", number + 2)


def test_json_lines_with_any_number_of_endings(tmp_path):
    found = read(write_json_lines(tmp_path / "train.jsonl", 5, choices=3))
    assert [(x.context, list(x.endings), x.label) for x in found] == [*made_choices(5, choices=3)]


def write_lines(folder, *objects):
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return path


GOOD = {"context": "It rains.", "endings": ["Yes", "No"], "label": 0}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"endings": ["Yes", "No", "So"]}, "line 2 has 3 endings where others have 2"),
        ({"endings": ["Yes"]}, "line 2 has no two endings"),
        ({"label": -1}, "line 2 has no correct ending"),
        ({"label": 2}, "line 2: the label 2 is none of the endings 0 to 1"),
        ({"label": True}, "line 2: the label True is none of the endings"),
        ({"context": None}, "line 2 has no text in the column 'sent1' or 'context', in front"),
        ({"sent2": 5}, "line 2 has no text in the column 'sent2', in front"),
    ],
)
def test_what_is_wrong_with_an_example_is_named_with_its_line(tmp_path, changes, sentence):
    path = write_lines(tmp_path, GOOD, {**GOOD, **changes})
    with pytest.raises(UserError, match=f"{path}: {sentence}"):
        read(path)


@pytest.mark.parametrize(("label", "expected"), [(1.0, 1), ("1.0", 1), (" 1", 1)])
def test_a_label_may_be_written_as_pandas_writes_it(tmp_path, label, expected):
    assert read(write_lines(tmp_path, {**GOOD, "label": label}))[0].label == expected


@pytest.mark.parametrize("label", [math.nan, None, -1.0, "nan", " "])
def test_what_stands_in_place_of_a_label_is_none(tmp_path, label, caplog):
    path = write_lines(tmp_path, {**GOOD, "label": label})
    caplog.set_level(logging.INFO)
    assert not has_labels(path, UTF_8)
    assert f"{path}: has no labels; not evaluated." in caplog.text
    assert has_labels(write_lines(tmp_path, {**GOOD, "label": label}, GOOD), UTF_8)
    with pytest.raises(UserError, match="line 1 has no correct ending"):
        read(path)


def test_columns_of_endings_must_be_all_there(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("sent1,sent2,ending0,ending2,label\nIt,is,so,no,0\n")
    with pytest.raises(UserError, match="are not ending0, ending1"):
        read(path)
