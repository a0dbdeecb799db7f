import io
import json
import sys
from types import SimpleNamespace

import pytest

from tests.support.text_tools import assert_one_sentence, run
from tools import tokenize_text


def test_lines_from_standard_input_to_a_file(tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nThe\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"The\r\nthe\n")))
    flags = ("--nodo_lower_case", f"--vocab_file={tmp_path}/vocab.txt")
    assert run(tokenize_text, *flags, f"--output_file={tmp_path}/out.jsonl") == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["ids"] for line in lines] == [[5], [1]]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [(["--vocab_file=/none"], "Error: /none: no such file"), ([], "Error: ")],
)
def test_mistakes_are_said_in_one_sentence(flags, sentence, capsys, tmp_path):
    assert_one_sentence(tokenize_text, flags, sentence, capsys, tmp_path)
