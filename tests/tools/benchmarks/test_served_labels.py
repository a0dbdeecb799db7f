"""Served labels compared with a table of predictions."""

import numpy as np
import pytest

from tools.benchmarks import served_labels

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
        flags = [f"--saved_model={tmp_path}", f"--predictions_file={path}", "--batch_size=2"]
        assert served_labels.main(flags) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_labels_that_differ_are_counted_and_shown(compare):
    first, shown, furthest, speed = compare("label")
    assert first == "2 of 3 labels are the same"
    assert shown.startswith("  'a cow': Answer(label='no'")
    assert furthest == "probabilities and numbers differ by 1.0e-01 at most"
    assert "2 texts a call" in speed


@pytest.mark.parametrize(("kind", "rows"), [("labels", 2), ("score", 2)])
def test_several_labels_of_pairs_and_numbers(compare, kind, rows):
    first, furthest, _ = compare(kind)
    assert first == f"{rows} of {rows} labels are the same"
    assert furthest == "probabilities and numbers differ by 0.0e+00 at most"


def test_what_is_no_table_of_predictions_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "other.tsv"
    path.write_text("text\tlabel\nx\t1\n")
    assert served_labels.main(["--saved_model=none", f"--predictions_file={path}"]) == 1
    error = capsys.readouterr().err.strip()
    assert "is no table of predictions" in error
    assert len(error.splitlines()) == 1
