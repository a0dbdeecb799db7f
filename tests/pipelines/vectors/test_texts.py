"""Texts of lines and of columns."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.config import TextsConfig
from pipelines.vectors.texts import open_texts


def read(path, column=None):
    return list(open_texts(TextsConfig(input_file=str(path), text_column=column)))


def test_lines_may_be_empty_and_columns_hold_line_breaks(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\nthree")
    assert read(tmp_path / "a.txt") == ["one", "", "three"]
    (tmp_path / "a.csv").write_text('x,y\n1,"two\nlines"\n2,three\n')
    assert read(tmp_path / "a.csv", "y") == ["two\nlines", "three"]
    (tmp_path / "b.csv").write_text("1,one\n2,two\n")
    assert read(tmp_path / "b.csv", "2") == ["one", "two"]
    (tmp_path / "a.jsonl").write_text('{"t": "one"}\n{"t": "two"}\n')
    assert read(tmp_path / "a.jsonl", "t") == ["one", "two"]


def test_what_is_no_text_is_named_by_its_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": "one"}\n{"t": 2}\n')
    with pytest.raises(UserError, match=r"a.jsonl: line 2 has 2 in the column 't'"):
        read(tmp_path / "a.jsonl", "t")
    with pytest.raises(UserError, match="has no column 'x'"):
        read(tmp_path / "a.jsonl", "x")
