"""Served labels and answers compared with those that a run wrote."""

import numpy as np
import pytest

from pipelines.tasks.questions.files import read_questions
from tests.support.squad_files import write_squad
from tools.benchmarks import served

TABLES = {
    "label": "line\ttext\tlabel\tprediction\tprobability\tP(no)\tP(yes)\n"
    "2\ta dog\tno\tno\t0.75\t0.75\t0.25\n"
    "3\ta cat\tyes\tyes\t0.9\t0.1\t0.9\n"
    "4\ta cow\tyes\tno\t0.6\t0.6\t0.4\n",
    "labels": "line\ttext\ttext_pair\tprediction\tP(big)\tP(é)\n"
    '2\tx\ty\t"[""big"", ""é""]"\t0.75\t0.5\n'
    '3\tx\tz\t"[""é""]"\t0.25\t0.5\n',
    "score": "line\ttext\tprediction\n2\tx\t1.5\n3\ty\t-2\n",
}
SERVED = {
    "label": {
        "label": np.array([b"no", b"yes", b"yes"]),
        "probabilities": np.array([[0.75, 0.25], [0.1, 0.9], [0.5, 0.5]]),
    },
    "labels": {
        "labels": np.array([[b"big", "é".encode()], [b"", "é".encode()]]),
        "probabilities": np.array([[0.75, 0.5], [0.25, 0.5]]),
    },
    "score": {"score": np.array([1.5, -2.0])},
}


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """Compares a kind's table with what a SavedModel answers, two texts a call."""

    def run(kind):
        asked, calls = [], []

        def load(folder, name, what, *, trusted):
            def ask(**texts):
                # The first call warms it up, and its texts are asked again.
                first = len(asked) if len(calls) > 1 else 0
                calls.append(first)
                asked[first:] = next(iter(texts.values())).numpy()
                assert sorted(texts) == (["text_a", "text_b"] if kind == "labels" else ["text"])
                return {key: value[first : len(asked)] for key, value in SERVED[kind].items()}

            return ask

        monkeypatch.setattr("keras_bert_impl.serving.signatures.load_signature", load)
        path = tmp_path / "dev_predictions.tsv"
        path.write_text(TABLES[kind])
        flags = [f"--saved_model={tmp_path}", f"--answers_file={path}", "--batch_size=2"]
        assert served.main(flags) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_labels_that_differ_are_counted_and_shown(compare):
    first, shown, furthest, speed = compare("label")
    assert first == "2 of 3 labels are the same"
    assert shown == "  'a cow': no 0.6 0.4 offline, yes 0.5 0.5 served"
    assert furthest == "probabilities and numbers differ by 1.0e-01 at most"
    assert speed.endswith(" labels a second, 2 a call")


@pytest.mark.parametrize(("kind", "rows"), [("labels", 2), ("score", 2)])
def test_several_labels_of_pairs_and_numbers(compare, kind, rows):
    first, furthest, _ = compare(kind)
    assert first == f"{rows} of {rows} labels are the same"
    assert furthest == "probabilities and numbers differ by 0.0e+00 at most"


def test_what_is_no_table_of_predictions_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "other.tsv"
    path.write_text("text\tlabel\nx\t1\n")
    assert served.main(["--saved_model=none", f"--answers_file={path}"]) == 1
    error = capsys.readouterr().err.strip()
    assert "is no table of predictions" in error
    assert len(error.splitlines()) == 1


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
    assert served.main(inputs) == 0
    first, shown, speed = capsys.readouterr().out.splitlines()
    assert first == "6 of 7 answers are the same"
    assert shown.startswith("  'q3': (0, 2) offline, (0, 1) odds of no answer")
    assert "answers a second" in speed


def test_parts_have_all_questions_between_them(inputs, capsys):
    for part, found in (("1/2", "4 of 4"), ("2/2", "2 of 3")):
        assert served.main([*inputs, f"--part={part}"]) == 0
        said = capsys.readouterr().out.splitlines()[0]
        assert said == f"{found} answers are the same (part {part})"


@pytest.mark.parametrize("part", ["0/2", "3/2", "half"])
def test_a_part_that_is_none_is_refused(inputs, capsys, part):
    assert served.main([*inputs, f"--part={part}"]) == 1
    assert f"--part={part} is none; give one such as 2/8" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "id\tstart\nx\t1\n"])
def test_what_is_no_table_of_answers_is_one_sentence(inputs, tmp_path, capsys, content):
    path = tmp_path / "other.tsv"
    if content:
        path.write_text(content)
    assert served.main([*inputs, f"--answers_file={path}"]) == 1
    error = capsys.readouterr().err.strip()
    assert "is no answers.tsv of run_squad" in error
    assert len(error.splitlines()) == 1
