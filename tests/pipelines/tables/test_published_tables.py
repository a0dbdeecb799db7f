"""Tables of known sets, as GLUE publishes them."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.tables.files import read_table


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "dev.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def table(*arguments, **options):
    return list(read_table(*arguments, **options))


def values(rows):
    return [row.values for row in rows]


def test_quotation_marks_and_unusual_line_separators_belong_to_the_text(write):
    path = write('text\tlabel\n"open\t1\na\x0bb\u2028c\x85d\t0\n')
    assert [row.values["text"] for row in table(path, ["text"])] == ['"open', "a\x0bb\u2028c\x85d"]


def test_a_row_with_a_missing_column_names_file_and_line(write):
    path = write("text\tlabel\nyes\t1\nno\n")
    with pytest.raises(UserError, match=r"dev\.tsv: line 3 has 1 columns instead of"):
        table(path, ["text"])


def test_broken_rows_can_be_left_out_and_are_counted(write, caplog):
    path = write("text\tlabel\nyes\t1\nbroken\nno\t0\n")
    with caplog.at_level(logging.WARNING):
        rows = table(path, ["text"], skip_broken_rows=True)
    assert [row.line for row in rows] == [2, 4]
    assert "left out 1 rows" in caplog.text


cell = st.text(st.characters(exclude_characters="\t\n\r\ufeff", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(cell, cell.filter(bool)), min_size=1, max_size=8))
def test_what_is_written_is_read(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("table") / "dev.tsv"
    lines = ["a\tb", *("\t".join(row) for row in table)]
    path.write_bytes("\n".join(lines).encode())
    read = [(row.values["a"], row.values["b"]) for row in read_table(path, ["a", "b"])]
    assert read == table


def test_in_a_file_of_one_column_an_empty_line_is_an_empty_text(write):
    rows = [(row.line, row.values["sentence"]) for row in table(write("sentence\na\n\nb\n"), [])]
    assert rows == [(2, "a"), (3, ""), (4, "b")]
