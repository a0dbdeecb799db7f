"""answer: its two ways to show answers, both forms of a model, and what a user may do wrong."""

import json

import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.task_settings import keep_task_settings, with_task_settings
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import tiny_config, write_classifier
from tests.support.plain_passages import VOCABULARY
from tests.support.tiny_bert import scatter_weights
from tools import answer

PASSAGE = "It  rained\tin\n\nthe U.S.\r\n비가 내렸다. 日本語\n"
SETTINGS = {
    "task": "squad",
    "max_seq_length": 20,
    "doc_stride": 4,
    "max_query_length": 6,
    "version_2_with_negative": True,
    "null_score_diff_threshold": 1000.0,
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answer")
    config = tiny_config(vocab_size=len(VOCABULARY), max_position_embeddings=20)
    model = scatter_weights(BertSpanLabeler(with_task_settings(config, SETTINGS)))
    write_model_directory(folder / "model", model, TextSettings(VOCABULARY))
    (folder / "passage.txt").write_bytes(PASSAGE.encode())
    (folder / "empty.txt").write_bytes(b"")
    return folder


def run(inputs, capsys, *flags, model="model"):
    words = [f"--model={inputs / model}", f"--passage_file={inputs}/passage.txt"]
    code = answer.main([*words, *flags])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err.strip()


def test_answers_are_the_passages_own_characters_with_their_places(inputs, capsys):
    flags = ["--question=rain?", "--question=비가?", "--format=json", "--num_answers=5"]
    code, out, _ = run(inputs, capsys, *flags)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [record["question"] for record in records] == ["rain?", "비가?"]
    for record in records:
        assert record["has_answer"]
        assert len(record["answers"]) == 5
        for one in record["answers"]:
            assert one["text"] == PASSAGE[one["start"] : one["end"]]
            assert one["line"] == PASSAGE[: one["start"]].count("\n") + 1
        probabilities = [one["probability"] for one in record["answers"]]
        assert probabilities == sorted(probabilities, reverse=True)


def test_openvino_finds_the_same_answers(inputs, capsys):
    flags = ["--question=rain?", "--question=비가?", "--num_answers=5"]
    code, out, _ = run(inputs, capsys, *flags)
    assert (code, run(inputs, capsys, *flags, "--engine=openvino")[1]) == (0, out)


def test_a_table_has_a_line_for_each_answer(inputs, capsys):
    code, out, _ = run(inputs, capsys, "--question=rain?", "--num_answers=2")
    lines = out.splitlines()
    assert (code, lines[0], len(lines)) == (0, "rain?", 3)
    assert "%  " in lines[1]
    assert "(line " in lines[1]


def test_no_answer_is_said(inputs, capsys):
    keep_task_settings(inputs / "model", {"null_score_diff_threshold": -1000.0})
    code, out, _ = run(inputs, capsys, "--question=rain?")
    keep_task_settings(inputs / "model", SETTINGS)
    assert (code, out.splitlines()[1]) == (0, "  no answer in the passage; the best guesses:")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "there is no question; give --question."),
        (["--question=x", "--passage_file=/no/passage.txt"], "/no/passage.txt: no such file"),
        (["--question=x", "--num_answers=0"], "--num_answers=0 must be 1 or more"),
        (["--question=x", "--model=/no/model"], "/no/model: no such file or folder"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(inputs, capsys, flags, sentence):
    code, out, error = run(inputs, capsys, *flags)
    assert (code, out) == (1, "")
    assert error.startswith("Error: ")
    assert sentence in error
    assert len(error.splitlines()) == 1


def test_a_model_for_something_else_is_refused(inputs, capsys, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    for flags in ([], ["--engine=openvino"]):
        code, _, error = run(inputs, capsys, "--question=x", *flags, model=folder)
        assert (code, "holds no model for questions" in error) == (1, True)


def test_a_passage_of_unknown_words_gets_a_warning(inputs, capsys, tmp_path):
    (tmp_path / "strange.txt").write_text("Ωραία μέρα σήμερα " * 20)
    flags = [f"--model={inputs}/model", "--question=rain?"]
    flags.append(f"--passage_file={tmp_path}/strange.txt")
    assert answer.main(flags) == 0
    said = capsys.readouterr().err
    assert "strange.txt and the questions: " in said
    assert "% of the words of a sample become [UNK] with " in said
