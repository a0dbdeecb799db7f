"""embed as a user runs it."""

import numpy as np

from tests.support.model_folders import write_encoder
from tools import embed


def test_a_line_becomes_a_vector(tmp_path, capsys):
    model = write_encoder(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("the dog\na cat\n")
    flags = [f"--model={model}", f"--input_file={tmp_path}/lines.txt"]
    assert embed.main([*flags, f"--output_file={tmp_path}/x.npy", "--pooling=cls"]) == 0
    assert capsys.readouterr().out == f"2 vectors of 16 numbers: {tmp_path}/x.npy\n"
    assert np.load(tmp_path / "x.npy").shape == (2, 16)


def test_a_missing_file_is_one_sentence(capsys):
    assert embed.main(["--model=m", "--input_file=/no/x", "--output_file=x.npy"]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("Error: /no/x: no such file")
    assert len(error.splitlines()) == 1
