import json
import re
import unicodedata

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tables.columns import Columns, check_columns, choose_columns
from pipelines.tables.files import Record, TableFile, open_table
from pipelines.tasks.labels.labelling import Labelling, find_labelling


def header(*columns):
    return TableFile("train.tsv", "tsv", columns)


def json_lines(folder, *lines):
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return open_table(str(path))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("id", "document", "label"), Columns("document", None, ("label",))),
        (("sentence1", "sentence2", "class"), Columns("sentence1", "sentence2", ("class",))),
        (("id", "문장1", "문장2", "점수"), Columns("문장1", "문장2", ("점수",))),
        (("Satz", "Kategorie", "Datum"), Columns("Satz", None, ("Kategorie",))),
        (("query", "document", "label"), Columns("query", "document", ("label",))),
        (("question", "answer", "label"), Columns("question", "answer", ("label",))),
        (("id", "context", "question", "label"), Columns("question", "context", ("label",))),
        (("질문", "답변", "label"), Columns("질문", "답변", ("label",))),
        (("question", "context", "answer", "label"), Columns("question", "context", ("label",))),
        (("text", "text_b", "label"), Columns("text", "text_b", ("label",))),
        (("text_a", "text_b", "text", "label"), Columns("text_a", "text_b", ("label",))),
        (("stance", "text", "label"), Columns("text", None, ("label",))),
    ],
)  # fmt: skip
def test_plain_columns_are_guessed(columns, expected):
    assert choose_columns(header(*columns), None, None, (), labelled=True) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_column_is_found_however_its_name_is_composed(tmp_path, form, name):
    """Files of some systems have every syllable in its letters."""
    text, label = (unicodedata.normalize(form, one) for one in ("리뷰", "감정"))
    row = json.dumps({text: "a", label: "b"}) if name.endswith("l") else f"{text},{label}\na,b"
    (tmp_path / name).write_text(row + "\n", encoding="utf-8")
    file = open_table(str(tmp_path / name))
    expected = Columns("리뷰", None, ("감정",))
    for named in ((None, ()), (text, (label,)), ("리뷰", ("감정",))):
        assert choose_columns(file, named[0], None, named[1], labelled=True) == expected
    (record,) = file.records()
    assert expected.read_texts(file, record) == ("a", None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("text", "comment", "label"), "which column is the text .'text' or 'comment'."),
        (("text", "x"), "which column is the label; name it with `label_column`"),
        (("ID", "Target", "Tweet", "Stance"), "is the label .'Target' or 'Stance'."),
        (("Text", "text", "label"), "which column is the text \\('Text' or 'text'\\)"),
        (("sentence1", "sentence2", "text", "label"), None),
    ],
)
def test_what_is_not_clear_must_be_named(columns, message):
    if message is None:
        found = choose_columns(header(*columns), None, None, (), labelled=True)
        assert found.texts == ["sentence1", "sentence2"]
        return
    with pytest.raises(UserError, match=message):
        choose_columns(header(*columns), None, None, (), labelled=True)


def test_a_column_that_is_missing_or_there_twice_is_named():
    with pytest.raises(UserError, match="line 1, the header, has no column 'body'"):
        check_columns(header("text", "label"), ["body"])
    with pytest.raises(UserError, match="has the column 'text' 2 times"):
        check_columns(header("text", "text", "label"), ["text"])
    with pytest.raises(UserError, match="one column is named for two things"):
        check_columns(header("text", "label"), ["text", "text"])
    with pytest.raises(UserError, match="line 1, the header, has the column 'label' 2 times"):
        choose_columns(header("text", "label", "label"), None, None, (), labelled=True)


@pytest.mark.parametrize(("value", "label"), [("spam", "spam"), (True, "true"), (2.5, "2.5")])
def test_a_single_label_may_be_text_a_number_or_a_truth_value(tmp_path, value, label):
    file = json_lines(tmp_path, {"label": value})
    labelling = find_labelling(file, ("label",), regression=False)
    assert labelling.kind == "one"
    assert labelling.read(file, next(file.records())) == label


@pytest.mark.parametrize("value", [["b", "a"], '["b", "a"]'])
def test_several_labels_are_a_list_or_a_list_in_text(tmp_path, value):
    file = json_lines(tmp_path, {"label": value}, {"label": []})
    labelling = find_labelling(file, ("label",), regression=False)
    assert labelling.kind == "several"
    assert [labelling.read(file, r) for r in file.records()] == ['["b", "a"]', "[]"]


def test_one_column_a_label_has_0_or_1():
    labelling = Labelling("columns", ("toxic", "rude"))

    def read(*cells):
        values = dict(zip(labelling.columns, cells, strict=True))
        return labelling.read(header("toxic", "rude"), Record(7, values))

    assert read("1", "0") == '["toxic"]'
    assert read("0", "true") == '["rude"]'
    assert read(None, None) is None
    with pytest.raises(UserError, match=r"line 7: the column 'rude' has '2', not 0 or 1"):
        read("1", "2")


@pytest.mark.parametrize("value", ["five", "nan", "1e39", True])
def test_a_regression_takes_finite_numbers_only(value):
    with pytest.raises(UserError, match=r"train.tsv: line 2: the label"):
        Labelling("number", ("y",)).read(header("y"), Record(2, {"y": value}))


@pytest.mark.parametrize("nothing", [float("nan"), " ", "\t"])
def test_nan_in_json_and_blanks_are_no_class(tmp_path, nothing):
    file = json_lines(tmp_path, {"label": nothing}, {"label": 1}, {"label": 2.5})
    labelling = find_labelling(file, ("label",), regression=False)
    assert [labelling.read(file, record) for record in file.records()] == [None, "1", "2.5"]


def test_texts_must_be_text():
    columns = Columns("text")
    assert columns.read_texts(header("text"), Record(2, {"text": None})) == ("", None)
    with pytest.raises(UserError, match="line 2: the column 'text' is a number, not text"):
        columns.read_texts(header("text"), Record(2, {"text": 5}))
    with pytest.raises(UserError, match="line 3 has no 'text'"):
        columns.read_texts(header("text"), Record(3, {}))


def test_what_separates_columns_is_told_where_there_is_one():
    message = "its columns: 'text|label'; commas, semicolons or tabs separate columns"
    with pytest.raises(UserError, match=re.escape(message)):
        choose_columns(TableFile("t.csv", "csv", ("text|label",)), None, None, (), labelled=True)
