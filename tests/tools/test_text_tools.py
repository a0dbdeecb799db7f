"""The tools that turn text into sentences, vocabularies and tokens, as a user types them."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

from tools import learn_vocabulary, split_sentences, tokenize_text


def run(tool, *flags):
    return tool.main([str(flag) for flag in flags])


def test_from_text_to_sentences_to_a_vocabulary_to_tokens(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(
        "The first sentence. The second one!\n\nAnother document.\n\n" * 9
    )
    sentences, vocabulary = tmp_path / "s.txt", tmp_path / "vocab.txt"
    assert run(split_sentences, f"--input_file={tmp_path}/a.txt", f"--output_file={sentences}") == 0
    assert capsys.readouterr().out == "18 documents, 27 sentences\n"
    assert (
        run(
            learn_vocabulary,
            *(f"--input_file={sentences}", f"--vocab_file={vocabulary}"),
            *("--vocab_size=60", "--show_merges=1", "--num_workers=1"),
        )
        == 0
    )
    report = capsys.readouterr().out.splitlines()
    assert report[0].startswith("   1  ")
    assert report[0].endswith("times)")
    assert report[1].startswith("60 tokens from 99 words")
    flags = (f"--vocab_file={vocabulary}", f"--input_file={sentences}", "--offsets=characters")
    assert run(tokenize_text, *flags) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert "".join(first["tokens"]).replace("##", "") == "thefirstsentence."
    assert first["spans"][-1] == [18, 19]


def test_lines_from_standard_input_to_a_file(tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nThe\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"The\r\nthe\n")))
    flags = ("--nodo_lower_case", f"--vocab_file={tmp_path}/vocab.txt")
    assert run(tokenize_text, *flags, f"--output_file={tmp_path}/out.jsonl") == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["ids"] for line in lines] == [[5], [1]]


@pytest.mark.parametrize(
    ("tool", "flags", "sentence"),
    [
        (split_sentences, ["--output_file=x"], "Error: --input_file names no file"),
        (split_sentences, ["--input_file=/none", "--output_file=x"], "Error: /none: no such file"),
        (tokenize_text, ["--vocab_file=/none"], "Error: /none: no such file"),
        (tokenize_text, [], "Error: "),
        (learn_vocabulary, ["--input_file=/none", "--vocab_file=x"], "Error: /none: no such file"),
        (learn_vocabulary, ["--vocab_size=3"], "Error: "),
    ],
)
def test_mistakes_are_said_in_one_sentence(tool, flags, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(tool, *flags) == 1
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "flags", "output"),
    [
        (split_sentences, ["--input_file={}/text.txt", "--output_file={}/text.txt"], "text.txt"),
        (split_sentences, ["--input_file={}", "--output_file={}/out.txt"], "out.txt"),
        (
            split_sentences,
            ["--input_file={}/", "--output_dir={}", "--num_shards=2"],
            "sentences-00000-of-00002.txt",
        ),
        (
            learn_vocabulary,
            [
                "--input_file={}",
                "--vocab_file={}/vocab.txt",
                "--vocab_size=30",
                "--min_frequency=1",
            ],
            "vocab.txt",
        ),
        (
            tokenize_text,
            ["--input_file={}/*", "--vocab_file={}.v", "--output_file={}/out.jsonl"],
            "out.jsonl",
        ),
    ],
)
def test_what_a_tool_has_written_is_not_its_input_the_next_time(
    tool, flags, output, tmp_path, capsys
):
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "text.txt").write_text("One sentence here. Two sentences there.\n\nMore of them.\n")
    (tmp_path / "text.v").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\n")
    arguments = [flag.replace("{}", str(folder)) for flag in flags]
    if output != "text.txt":
        assert run(tool, *arguments, *["--num_workers=1"] * (tool is not tokenize_text)) == 0
    capsys.readouterr()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run(tool, *arguments) == 1
    said = capsys.readouterr().err
    assert f"{output}: is input, but the output would take its place; name another --" in said
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
