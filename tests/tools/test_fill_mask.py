"""fill_mask: its two ways to show answers, and what a user may do wrong."""

import json

import pytest

from tests.support.model_folders import write_encoder, write_pretrainer
from tools import fill_mask


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_pretrainer(tmp_path_factory.mktemp("fill_mask") / "model")


def run(model, capsys, *flags):
    code = fill_mask.main([f"--model={model}", *flags])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err.strip()


def test_a_table_has_the_text_and_the_tokens_with_their_probabilities(model, capsys):
    code, out, _ = run(model, capsys, "--text=the [MASK] [MASK].", "--top_k=2")
    lines = out.splitlines()
    assert code == 0
    assert [lines[0], lines[1], lines[4]] == ["the [MASK] [MASK].", "  [MASK] 1", "  [MASK] 2"]
    best, second = lines[2].split(), lines[3].split()
    assert float(best[0].rstrip("%")) >= float(second[0].rstrip("%"))
    assert len(lines) == 7


def test_json_has_one_object_a_text(model, capsys, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("\ufeffa [MASK]\r\n\nthe [MASK] é\n", encoding="utf-8")
    flags = ["--text=[MASK]\n[MASK] runs", f"--input_file={file}", "--format=json", "--top_k=1"]
    code, out, _ = run(model, capsys, *flags)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [record["text"] for record in records] == [
        "[MASK]",
        "[MASK] runs",
        "a [MASK]",
        "the [MASK] é",
    ]
    assert all(len(record["masks"]) == 1 for record in records)
    assert set(records[0]["masks"][0][0]) == {"token", "probability"}


def test_a_text_without_mask_is_named_by_its_line_and_the_others_are_filled_in(
    model, capsys, tmp_path
):
    file = tmp_path / "texts.txt"
    file.write_text("a [MASK]\n\nthe dog\n강아지\nthe [MASK]\n", encoding="utf-8")
    flags = [f"--input_file={file}", "--text=a cat", "--text=[MASK]\nruns", "--format=json"]
    code, out, error = run(model, capsys, *flags)
    assert code == 1
    assert [json.loads(line)["text"] for line in out.splitlines()] == [
        *("[MASK]", "a [MASK]", "the [MASK]")
    ]
    assert error.splitlines() == [
        f"Error: {where} has no [MASK]; write [MASK] for the word to find."
        for where in (
            "--text 1: 'a cat'",
            "--text 2, line 2: 'runs'",
            f"{file}: line 3: 'the dog'",
            f"{file}: line 4: '강아지'",
        )
    ]


def test_a_long_text_gets_a_warning_and_is_answered(model, capsys):
    code, out, error = run(model, capsys, "--text=" + "a dog " * 20 + "[MASK]", "--top_k=1")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "A text is longer than the model's positions; 31 of its tokens" in error


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "there is no text; give --text or an --input_file with text."),
        (["--text= \n"], "there is no text"),
        (["--text=the dog"], "'the dog' has no [MASK]; write [MASK] for the word to find."),
        (["--text=[MASK]", "--top_k=0"], "top_k"),
        (["--input_file=/no/texts.txt"], "/no/texts.txt: no such file"),
        (
            ["--text=[MASK]", "--model=/no/model"],
            "/no/model: no such file or folder",
        ),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(model, capsys, flags, sentence):
    code, out, error = run(model, capsys, *flags)
    assert (code, out) == (1, "")
    assert error.startswith("Error: ")
    assert sentence in error
    assert len(error.splitlines()) == 1


def test_a_file_that_is_not_utf8_is_named_with_its_line(model, capsys, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_bytes(b"[MASK]\n\xff\n")
    code, _, error = run(model, capsys, f"--input_file={file}")
    assert (code, "texts.txt: line 2 is not UTF-8" in error) == (1, True)


def test_a_model_without_masked_lm_head_is_refused(capsys, tmp_path):
    folder = write_encoder(tmp_path / "encoder")
    code, _, error = run(folder, capsys, "--text=[MASK]")
    assert (code, "has no masked-LM head" in error) == (1, True)


def test_unknown_words_get_a_warning(model, capsys, tmp_path):
    code, _, error = run(model, capsys, "--text=비가 온다 [MASK] 하루 종일")
    assert code == 0
    assert "the texts: 100.0 % of the words of a sample become [UNK]" in error
    code, _, error = run(model, capsys, "--text=the dog runs [MASK] é")
    assert (code, "[UNK]" in error) == (0, False)
