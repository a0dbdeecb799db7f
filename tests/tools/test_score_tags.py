"""score_tags as a user runs it."""

import pytest

from tools import score_tags


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "dev_predictions.txt"
    path.write_text("Ada B-PER B-PER\nByron I-PER O\n\nIt O O\n")
    return [f"--predictions_file={path}"]


def test_figures_are_printed(words, capsys):
    assert score_tags.main(words) == 0
    figures = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert set(figures) == {"precision", "recall", "f1", "f1_low", "f1_high"}
    assert float(figures["f1"]) == 0.0


def test_a_missing_file_is_one_sentence(capsys):
    assert score_tags.main(["--predictions_file=/no/dev.txt"]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("Error: /no/dev.txt: no such file")
    assert len(error.splitlines()) == 1
