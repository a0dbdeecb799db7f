"""`fill_mask` and `answer`: what they show, by every engine, and what a user may do wrong."""

import json

import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.serving.export import export_portable
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.tasks.register import open_and_serve
from tests.support.model_folders import tiny_config, write_encoder, write_pretrainer
from tests.support.plain_passages import VOCABULARY
from tests.support.tiny_bert import scatter_weights
from tools import answer, fill_mask

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
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    write_pretrainer(folder / "words")
    config = tiny_config(vocab_size=len(VOCABULARY), max_position_embeddings=20)
    model = scatter_weights(BertSpanLabeler(with_task_settings(config, SETTINGS)))
    write_model_directory(folder / "questions", model, TextSettings(VOCABULARY))
    (folder / "passage.txt").write_bytes(PASSAGE.encode())
    return folder


def asked(tool, folder, capsys, *flags):
    """The exit code of a tool, what it prints and what it says."""
    model = {fill_mask: "words", answer: "questions"}[tool]
    code = tool.main([f"--model={folder / model}", *flags])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def test_a_table_has_the_text_and_so_many_words_for_each_mask(folder, capsys):
    flags = ["--text=the [MASK] [MASK].", "--text=a cat", "--top_k=7"]
    code, out, _ = asked(fill_mask, folder, capsys, *flags)
    lines = out.splitlines()
    assert code == 0
    assert [lines[0], lines[1], lines[9]] == ["the [MASK] [MASK].", "  [MASK] 1", "  [MASK] 2"]
    best, second = (float(line.split()[0].rstrip("%")) for line in lines[2:4])
    assert best >= second
    assert lines[17:] == ["a cat", "  no [MASK]"]


def test_an_export_and_another_engine_give_the_same_words(folder, capsys, tmp_path):
    opened, _ = open_and_serve(folder / "words")
    export_portable(opened, tmp_path / "export", "openvino", verify=False)
    flags = ["--text=the [MASK] runs. [MASK]", "--top_k=3", "--format=json"]
    _, expected, _ = asked(fill_mask, folder, capsys, *flags)
    for more in (["--engine=openvino"], [f"--model={tmp_path}/export"]):
        code, out, _ = asked(fill_mask, folder, capsys, *flags, *more)
        tokens = [json.loads(text)["answer"]["tokens"] for text in (out, expected)]
        assert (code, tokens[0]) == (0, tokens[1])


def test_answers_are_the_passages_own_characters_with_their_places(folder, capsys):
    flags = [f"--passage_file={folder}/passage.txt", "--question=rain?", "--question=비가?"]
    code, out, _ = asked(answer, folder, capsys, *flags, "--format=json")
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, [record["input"]["question"] for record in records]) == (0, ["rain?", "비가?"])
    for found in (record["answer"] for record in records):
        places = zip(found["starts"], found["ends"], strict=True)
        assert found["answers"] == [PASSAGE[start:end] for start, end in places]
        assert found["scores"] == sorted(found["scores"], reverse=True)

    code, out, _ = asked(answer, folder, capsys, *flags, "--num_answers=2", "--engine=openvino")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 6)
    assert "(line " in lines[1]


@pytest.mark.parametrize("form", ["table", "json"])
def test_so_many_answers_are_given_as_are_asked_for_and_no_more_than_the_model_finds(
    folder, capsys, form
):
    flags = [f"--passage_file={folder}/passage.txt", "--question=rain?", f"--format={form}"]
    code, out, _ = asked(answer, folder, capsys, *flags, "--num_answers=7")
    assert code == 0
    if form == "table":
        assert out.count("(line ") == 7
    else:
        found = json.loads(out)["answer"]
        assert {len(one) for one in found.values() if isinstance(one, list)} == {7}
        assert found["answer_counts"] == 7
    code, _, error = asked(answer, folder, capsys, *flags, "--num_answers=21")
    assert (code, "finds 20 answers to a question (n_best_size), not 21" in error) == (0, True)


@pytest.mark.parametrize(
    ("tool", "flags", "sentence"),
    [
        (fill_mask, [], "nothing is asked; give --text or --input_file."),
        (fill_mask, ["--text=[MASK]", "--top_k=0"], "top_k"),
        (fill_mask, ["--input_file=/no/texts.txt"], "/no/texts.txt: no such file"),
        (fill_mask, ["--text=[MASK]", "--model=/no/model"], "/no/model: no such file or folder"),
        (answer, ["--passage_file=x"], "--question is missing"),
        (answer, ["--question=x", "--passage_file=/no/p.txt"], "/no/p.txt: no such file"),
        (answer, ["--question=x", "--passage_file=x", "--model=/no/model"], "/no/model: no such"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(folder, capsys, tool, flags, sentence):
    code, out, error = asked(tool, folder, capsys, *flags)
    assert (code, out, error.count("\n")) == (1, "", 1)
    assert error.startswith("Error: ")
    assert sentence in error


@pytest.mark.parametrize(
    ("tool", "flags", "lacks"),
    [
        (fill_mask, ["--text=[MASK]"], "has no masked-LM head"),
        (answer, ["--question=x", "--passage_file={}/passage.txt"], "holds no model for questions"),
    ],
)
def test_a_model_for_something_else_is_refused(folder, capsys, tmp_path, tool, flags, lacks):
    model = write_encoder(tmp_path / "encoder")
    for engine in ([], ["--engine=openvino"]):
        words = [word.format(folder) for word in flags]
        code, _, error = asked(tool, folder, capsys, f"--model={model}", *words, *engine)
        assert (code, lacks in error) == (1, True)
