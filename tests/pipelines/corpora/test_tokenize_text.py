import io
import json
import os

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.corpora.tokenize_text import (
    TokenizeTextConfig,
    read_all_lines,
    run_tokenize_text,
    tokenize_text,
)


@pytest.fixture
def vocab_file(tmp_path):
    Vocabulary([*SPECIAL_TOKENS, "the", "word", "##s"]).write(tmp_path / "vocab.txt")
    return str(tmp_path / "vocab.txt")


def tokenized(config, lines):
    output = io.StringIO()
    assert tokenize_text(config, lines, output) == len(lines)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_lines_become_json_lines(vocab_file):
    found = tokenized(TokenizeTextConfig(vocab_file=vocab_file), [b"The words", b"", b"x"])
    assert found == [
        {"tokens": ["the", "word", "##s"], "ids": [5, 6, 7]},
        {"tokens": [], "ids": []},
        {"tokens": ["[UNK]"], "ids": [1]},
    ]


@pytest.mark.parametrize(("unit", "second"), [("bytes", [3, 6]), ("characters", [2, 5])])
def test_places_are_written_where_asked_for(vocab_file, unit, second):
    found = tokenized(TokenizeTextConfig(vocab_file=vocab_file, offsets=unit), ["é the".encode()])
    assert found[0]["spans"] == [[0, second[0] - 1], second]


def test_lines_of_several_files(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\nTwo.")
    (tmp_path / "b.txt").write_text("Three.\r\n")
    assert list(read_all_lines([f"{tmp_path}/*.txt"])) == [b"One.", b"", b"Two.", b"Three."]
    (tmp_path / "c.jsonl").write_text('{"text": "One.\\n\\nTwo  three."}\n')
    assert list(read_all_lines([f"{tmp_path}/c.jsonl"], "text")) == ["One.", "Two  three."]


@pytest.mark.parametrize(
    ("content", "start", "tokens"),
    [
        (b"\xef\xbb\xbfThe words\r\n", 0, ["the", "word", "##s"]),
        (b"head\nthe\n", 5, ["the"]),
        (b"", 0, None),
    ],
    ids=["without its byte-order mark", "from where it is read", "or nothing"],
)
def test_standard_input_is_read_like_a_file(vocab_file, tmp_path, content, start, tokens):
    (tmp_path / "in").write_bytes(content)
    output, standard = io.StringIO(), os.dup(0)
    with (tmp_path / "in").open("rb", buffering=0) as file:
        file.seek(start)
        os.dup2(file.fileno(), 0)
    try:
        run_tokenize_text(TokenizeTextConfig(vocab_file=vocab_file), output)
    finally:
        os.dup2(standard, 0)
        os.close(standard)
    assert [json.loads(line)["tokens"] for line in output.getvalue().splitlines()] == (
        [tokens] if tokens else []
    )


STRANGE = [f"Ein Wort {number}".encode() for number in range(30)]


def test_a_text_that_the_vocabulary_does_not_fit_leaves_no_file(vocab_file, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\n".join(STRANGE))
    config = TokenizeTextConfig(
        input_file=[str(tmp_path / "text.txt")],
        output_file=str(tmp_path / "tokens.jsonl"),
        vocab_file=vocab_file,
    )
    with pytest.raises(UserError, match=r"text\.txt: 100\.0 % of the words .* \(ein, wort, 0\)"):
        run_tokenize_text(config, io.StringIO())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt", "vocab.txt"]
