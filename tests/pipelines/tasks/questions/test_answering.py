"""Passages as they are read; answers are tested with the tool."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.answering import read_passage


def test_a_passage_keeps_its_blanks_and_line_ends(tmp_path):
    path = tmp_path / "passage.txt"
    path.write_bytes("\ufeffIt  rained\r\n\tin\u00a0May.\n".encode())
    assert read_passage(path) == "It  rained\r\n\tin\u00a0May.\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b" \n", "nothing but blanks"),
        (b"rain \xff", "byte 5 is not UTF-8"),
    ],
)
def test_what_is_no_passage_is_named(tmp_path, content, sentence):
    path = tmp_path / "passage.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"passage.txt: .*{sentence}"):
        read_passage(path)
