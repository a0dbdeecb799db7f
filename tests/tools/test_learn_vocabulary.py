import json

import pytest

from tests.support.text_tools import assert_one_sentence, run
from tools import learn_vocabulary, split_sentences, tokenize_text


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
            *("--vocab_size=60", "--num_workers=1"),
        )
        == 0
    )
    report = capsys.readouterr().out.splitlines()
    assert report[0].startswith("60 tokens from 99 words")
    flags = (f"--vocab_file={vocabulary}", f"--input_file={sentences}", "--offsets=characters")
    assert run(tokenize_text, *flags) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert "".join(first["tokens"]).replace("##", "") == "thefirstsentence."
    assert first["spans"][-1] == [18, 19]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--input_file=/none", "--vocab_file=x"], "Error: /none: no such file"),
        (["--vocab_size=3"], "Error: "),
    ],
)
def test_mistakes_are_said_in_one_sentence(flags, sentence, capsys, tmp_path):
    assert_one_sentence(learn_vocabulary, flags, sentence, capsys, tmp_path)
