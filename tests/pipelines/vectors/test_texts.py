"""Texts of lines and of columns."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.vectors.texts import count_texts, open_texts


def read(path, column=None):
    return list(open_texts(str(path), column))


def test_lines_may_be_empty_and_columns_hold_line_breaks(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\nthree")
    assert read(tmp_path / "a.txt") == ["one", "", "three"]
    (tmp_path / "a.csv").write_text('x,y\n1,"two\nlines"\n2,three\n')
    assert read(tmp_path / "a.csv", "y") == ["two\nlines", "three"]
    (tmp_path / "b.csv").write_text("1,one\n2,two\n")
    assert read(tmp_path / "b.csv", "2") == ["one", "two"]
    (tmp_path / "a.jsonl").write_text('{"t": "one"}\n{"t": "two"}\n')
    assert read(tmp_path / "a.jsonl", "t") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,review,label\n7,"two\nlines",1\n8,three,0\n'),
        ("a.jsonl", '{"id": 7, "review": "two\\nlines"}\n{"id": 8, "review": "three"}\n'),
        ("b.CSV", 'text\n"two\nlines"\nthree\n'),
    ],
)
def test_of_a_table_the_column_that_is_plainly_the_text_is_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    texts = open_texts(str(tmp_path / name))
    assert list(texts) == ["two\nlines", "three"]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert read(tmp_path / f"{name}.gz") == ["two\nlines", "three"]


def test_null_is_an_empty_text_and_a_number_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": null}\n{"t": "two"}\n{"t": 3}\n')
    texts = iter(open_texts(str(tmp_path / "a.jsonl"), "t"))
    assert [next(texts), next(texts)] == ["", "two"]
    with pytest.raises(UserError, match=r"a\.jsonl: line 3: the column 't' is a number, not text"):
        next(texts)


@pytest.mark.parametrize("content", ["great film\nbad film\n", "question,answer\na,b\n"])
def test_a_table_without_a_plain_text_is_refused(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(UserError, match=r"not clear which column is the text.*`text_column`"):
        read(tmp_path / "a.csv")


def test_a_header_is_no_text(tmp_path):
    (tmp_path / "a.csv").write_text("review,stars\nfine,5\n")
    with pytest.raises(
        UserError, match=r"line 1 seems to name the columns .*; name the columns\.$"
    ):
        read(tmp_path / "a.csv", "1")


@given(st.text(min_size=1))
def test_the_lines_are_those_between_line_feeds(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_bytes(text.encode("utf-8", "replace"))
    content = path.read_bytes().decode("utf-8-sig")
    if not content:
        return
    lines = [line.rstrip("\r") for line in content.removesuffix("\n").split("\n")]
    assert list(open_texts(str(path))) == lines
    assert count_texts(open_texts(str(path)), "lines") == len(lines)
