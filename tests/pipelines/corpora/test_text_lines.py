import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.text_lines import TextLines


@given(st.text(min_size=1))
def test_the_lines_are_those_between_line_feeds(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_bytes(text.encode("utf-8", "replace"))
    content = path.read_bytes().decode("utf-8-sig")
    if not content:
        return
    lines = [line.rstrip("\r") for line in content.removesuffix("\n").split("\n")]
    assert list(TextLines(path)) == lines
    assert len(TextLines(path)) == len(lines)


def test_counting_finds_a_fault_in_the_last_line_and_names_it(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xffthree\n")
    with pytest.raises(UserError, match=r"lines\.txt: line 3 is not UTF-8; convert the file"):
        len(TextLines(path))


def test_a_file_without_a_line_has_no_count(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(UserError, match="holds a byte-order mark and no line"):
        len(TextLines(path))


def test_lines_are_counted_once(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n")
    lines = TextLines(path)
    assert len(lines) == 2
    path.unlink()
    assert len(lines) == 2
