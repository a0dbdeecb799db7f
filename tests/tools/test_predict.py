"""predict as a user runs it."""

import io
import json

import pytest

from tests.support.model_folders import write_classifier, write_pretrainer
from tools import predict


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("labels") / "model", ["no", "yes"])


def test_texts_and_pairs_are_answered_in_a_table(classifier, capsys):
    assert predict.main([f"--model={classifier}", "--text=the dog", "--text=a cat"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if "%" in line].count("no") == 2
    assert lines[0] == "the dog"
    words = ["--text=the dog", "--text_pair=a cat"]
    assert predict.main([f"--model={classifier}", *words]) == 0
    assert capsys.readouterr().out.startswith("the dog | a cat\n")


def test_a_table_has_as_many_words_for_a_mask_as_are_asked_for(tmp_path, capsys):
    model = write_pretrainer(tmp_path / "model")
    assert predict.main([f"--model={model}", "--text=the [MASK]", "--top_k=7"]) == 0
    assert capsys.readouterr().out.count("%") == 7


def test_the_lines_of_a_file_become_json_lines(classifier, tmp_path, capsys):
    (tmp_path / "reviews.csv").write_text('id,review\n1,"the dog, runs"\n2,a cat\n')
    output = tmp_path / "answers.jsonl"
    words = [f"--input_file={tmp_path}/reviews.csv", "--text_column=review", "--format=json"]
    assert predict.main([f"--model={classifier}", *words, f"--output_file={output}"]) == 0
    assert capsys.readouterr().out == f"2 answers: {output}\n"
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert [one["input"] for one in answers] == [{"text": "the dog, runs"}, {"text": "a cat"}]
    answer = answers[0]["answer"]
    assert answer.keys() == {"label", "probabilities", "logits", "label_probabilities"}
    assert answer["label_probabilities"][0] == [answer["label"], max(answer["probabilities"])]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "nothing is asked"),
        (("--text=a", "--input_file=b"), "exclude each other"),
        (("--text=a", "--text_pair=b", "--text_pair=c"), "give as many"),
        (("--question=a",), "belong together"),
        (("--text=a", "--signature=raw_text"), "choose text, text_pair"),
        (("--text=a", "--engine_precision=int8", "--engine=tensorflow"), "--precision=int8"),
        (("--text=a", "--signature=text_pair"), "--text: has text, but this model is"),
        (("--context=a", "--ending=b"), "but this model is asked with text"),
        (("--text=a", "--text_column=b"), "--text_column is a column of --input_file"),
        (("--input_file=LINES", "--signature=text_pair"), "lines hold one text each"),
    ],
)
def test_a_mistake_is_one_sentence(classifier, tmp_path, capsys, flags, sentence):
    (tmp_path / "lines.txt").write_text("a\n")
    flags = [flag.replace("LINES", f"{tmp_path}/lines.txt") for flag in flags]
    assert predict.main([f"--model={classifier}", *flags]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert sentence in error


def test_masked_words_of_a_stream(tmp_path, capsys, monkeypatch):
    model = write_pretrainer(tmp_path / "model")
    lines = tmp_path / "lines.txt"
    lines.write_text("the [MASK] runs\na cat\n")
    monkeypatch.setattr("pipelines.answering.asked_texts.text_lines", _lines_of(lines))
    words = [f"--model={model}", "--input_file=-", "--format=json", "--top_k=2"]
    assert predict.main(words) == 0
    answers = [json.loads(line)["answer"] for line in io.StringIO(capsys.readouterr().out)]
    assert [one["mask_counts"] for one in answers] == [1, 0]
    assert len(answers[0]["tokens"][0]) == 2


def _lines_of(path):
    return lambda name, stream: iter(path.read_text().splitlines())
