import numpy as np
import pytest

from pipelines.tables.writing import write_submission, write_values


def test_probabilities_stand_tab_separated_without_a_header(tmp_path):
    path = write_values(tmp_path / "test_results.tsv", np.array([[0.5, 0.5], [0.125, 0.875]]))
    assert path.read_text() == "0.5\t0.5\n0.125\t0.875\n"


def test_a_submission_has_a_header_and_the_index_of_each_answer(tmp_path):
    path = write_submission(tmp_path / "CoLA.tsv", [("0", "1"), ("7", "0")])
    assert path.read_text() == "index\tprediction\n0\t1\n7\t0\n"


def test_a_submission_with_a_missing_answer_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        write_submission(tmp_path / "CoLA.tsv", zip(["0", "1"], ["1"], strict=True))
    assert list(tmp_path.iterdir()) == []
