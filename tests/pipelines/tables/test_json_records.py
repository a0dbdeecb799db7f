import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.tables import files
from pipelines.tables.files import open_table

TRICKY = [{"text": 'a "{[" \\', "label": [1, {"x": 2}]}, {"text": "b]}", "label": []}]


def array(text):
    return list(files._objects_of_array("t.json", text))


def an_object(text):
    return files._object("t.jsonl", 1, text)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_may_be_laid_out_in_any_way(indent):
    assert [values for _, values in array(json.dumps(TRICKY, indent=indent))] == TRICKY


def test_half_a_surrogate_pair_is_no_text_wherever_it_stands():
    (record,) = array(r'[{"a\ud83d": ["b\ud83d", ["\ud83d"]], "c": "d\ud83d"}]')
    assert "\\ud83d" not in json.dumps(record[1])
    assert (len(record[1]), *record[1]["c"][:1]) == (2, "d")


def test_objects_in_objects_are_columns():
    text = '{"labels": {"label": 3.7, "more": {"b": 1}}, "x": {}}'
    assert an_object(text) == {"labels.label": 3.7, "labels.more.b": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},\n{"a": 2', r"t.json: line 2 is not JSON from column 8 on"),
        ('[{"a": 1}, {\n"a":\n 1 2}]', r"t.json: line 3 is not JSON from column 4 on"),
        ('[{"a": 1},\n"a"]', r"t.json: line 2 has something other than the next object"),
        ('[{"a": 1}]\nmore 5', r"line 1 has something other than the next object"),
        ('[{"a": {"b": 1}, "a.b": 2}]', r"t.json: line 1 has the column 'a.b' twice"),
    ],
)
def test_what_is_no_array_of_objects_is_named_with_its_line(text, message):
    with pytest.raises(UserError, match=message):
        array(text)


VALUES = (
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
)


@given(
    st.lists(st.dictionaries(st.text("abc", min_size=1), VALUES | st.lists(VALUES)), min_size=1),
    st.sampled_from([None, 1]),
)
def test_what_json_writes_is_read_as_it_was(objects, indent):
    text = json.dumps(objects, indent=indent, ensure_ascii=False)
    assert [values for _, values in array(text)] == objects


def test_an_array_on_one_line_may_be_longer_than_any_other_line(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.corpora.encodings.MOST_LINE_BYTES", 1000)
    monkeypatch.setattr("pipelines.corpora.encodings.BLOCK_BYTES", 100)
    rows = [{"text": f"row {number}"} for number in range(500)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert [one.values for one in open_table(str(tmp_path / "rows.json")).records()] == rows
