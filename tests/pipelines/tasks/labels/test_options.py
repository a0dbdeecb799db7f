import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.labels.options import LabelledTextsConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dev_file": "d.csv", "dev_share": 0.1}, "`dev_share=0.1` is a part of"),
        ({"regression": True, "class_weights": ("balanced",)}, "a regression has no classes"),
        ({"regression": True, "label_column": ("a", "b")}, "a regression has one column"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        LabelledTextsConfig(train_file="t.csv", **options)


@pytest.mark.parametrize(
    ("options", "has_header"),
    [
        ({}, True),
        ({"text_column": "2"}, False),
        ({"text_column": "2", "header": True}, True),
        ({"text_column": "text", "header": False}, False),
    ],
)
def test_columns_given_by_numbers_mean_that_there_is_no_header(options, has_header):
    assert LabelledTextsConfig(train_file="t.csv", **options).has_header is has_header
