import csv

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tables.columns import Columns
from pipelines.tables.files import open_table
from pipelines.tasks.labels.labelling import (
    Source,
    check_scored,
    dev_thresholds,
    find_labelling,
    in_order,
    text_key,
    training_statistics,
)

PLENTY = [(f"text {number}", "ab"[number % 2]) for number in range(1000)]


def source(path, rows, labels=("label",), *, regression=False):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text", *labels], *rows])
    opened = open_table(str(path))
    labelling = find_labelling(opened, labels, regression=regression)
    return Source(opened, Columns("text", None, labels), labelling)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "9", "-1.5"], ("-1.5", "9", "10")),
        (["b", "B", "10"], ("10", "B", "b")),
        (["nan", "1"], ("1", "nan")),
    ],
)
def test_the_order_of_labels_is_that_of_numbers_or_of_characters(labels, order):
    assert in_order(labels) == order


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", "a"), ("y", "a")], "must be two labels or more .* the only one is 'a'"),
        ([("x", "a"), ("y", "")], "line 3 has no label in the column 'label'"),
        ([("", "a"), (" ", "b")], "no row has a text in the column 'text'"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(tmp_path, rows, message):
    with pytest.raises(UserError, match=message):
        training_statistics(source(tmp_path / "t.csv", rows), 0)


def test_labels_that_the_model_does_not_know_are_counted(tmp_path):
    assert check_scored(source(tmp_path / "t.csv", PLENTY), ["a", "b"], required=True)
    unseen = source(tmp_path / "u.csv", [("x", "a"), ("y", "c"), ("z", "d")])
    message = r"u.csv: rows with labels .* know: 2, the first 'c' on line 3; it knows a, b\. "
    with pytest.raises(UserError, match=message):
        check_scored(unseen, ["a", "b"], required=False)


def test_a_file_with_a_stand_in_for_all_labels_has_none(tmp_path):
    stand_ins = source(tmp_path / "t.csv", [("x", "-1"), ("y", "-1")])
    assert not check_scored(stand_ins, ["a", "b"], required=False)
    with pytest.raises(UserError, match=r"t.csv: rows with labels .* 2, the first '-1' on line 2"):
        check_scored(stand_ins, ["a", "b"], required=True)


def test_each_label_has_its_share_of_the_dev_set(tmp_path):
    rows = [(f"text {number}", "abbb"[number % 4]) for number in range(400)]
    statistics = training_statistics(source(tmp_path / "t.csv", rows), 5)
    thresholds = dev_thresholds(statistics, 0.2)
    held = [label for text, label in rows if text_key(5, text, None) < thresholds[label]]
    assert (held.count("a"), held.count("b")) == (20, 60)
    other = {text for text, label in rows if text_key(6, text, None) < thresholds[label]}
    assert other != {text for text, label in rows if text_key(5, text, None) < thresholds[label]}
