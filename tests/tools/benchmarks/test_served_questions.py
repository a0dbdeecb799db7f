"""Served answers compared with a table of answers."""

import pytest

from pipelines.tasks.questions.files import read_questions
from tests.support.squad_files import write_squad
from tools.benchmarks import served_questions

COLUMNS = "f1\tid\tstart\tend\n"


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Seven questions; every served answer is the passage's first character."""
    data = write_squad(tmp_path / "dev.json", 7)

    def load(*_, trusted):
        assert trusted

        def ask(question, passage):
            count = int(question.shape[0])
            zeros = {name: [0] * count for name in ("start", "no_answer_score", "score")}
            return {**zeros, "end": [1] * len(passage)}

        return ask

    monkeypatch.setattr("keras_bert_impl.serving.signatures.load_signature", load)
    names = [one.identifier for one in read_questions(data, version_2_with_negative=False)]
    rows = [f"0\t{name}\t0\t{1 + (name == 'q3')}\n" for name in names]
    (tmp_path / "answers.tsv").write_text(COLUMNS + "".join(rows))
    return [
        f"--saved_model={tmp_path}",
        "--trust_saved_model",
        f"--data_file={data}",
        f"--answers_file={tmp_path}/answers.tsv",
        "--batch_size=3",
    ]


def test_answers_that_differ_are_counted_and_shown(inputs, capsys):
    assert served_questions.main(inputs) == 0
    first, shown, speed = capsys.readouterr().out.splitlines()
    assert first == "6 of 7 answers are the same"
    assert shown.startswith("  q3: (0, 2) offline, (0, 1) served")
    assert "answers a second" in speed


def test_parts_have_all_questions_between_them(inputs, capsys):
    for part, found in (("1/2", "4 of 4"), ("2/2", "2 of 3")):
        assert served_questions.main([*inputs, f"--part={part}"]) == 0
        said = capsys.readouterr().out.splitlines()[0]
        assert said == f"{found} answers are the same (part {part})"


@pytest.mark.parametrize("part", ["0/2", "3/2", "half"])
def test_a_part_that_is_none_is_refused(inputs, capsys, part):
    assert served_questions.main([*inputs, f"--part={part}"]) == 1
    assert f"--part={part} is none; give one such as 2/8" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "id\tstart\nx\t1\n"])
def test_what_is_no_table_of_answers_is_one_sentence(inputs, tmp_path, capsys, content):
    path = tmp_path / "other.tsv"
    if content:
        path.write_text(content)
    assert served_questions.main([*inputs, f"--answers_file={path}"]) == 1
    error = capsys.readouterr().err.strip()
    assert "is no answers.tsv of run_squad" in error
    assert len(error.splitlines()) == 1
