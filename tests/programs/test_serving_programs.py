"""From a model directory to answers: export_saved_model, then fill_mask in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_folders import write_pretrainer

ROOT = Path(__file__).parent.parent.parent


def run(tool, *flags):
    words = [sys.executable, "-m", "tools", tool, *flags]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_saved_model_is_verified_and_answers_as_the_model_directory(tmp_path):
    model, saved = write_pretrainer(tmp_path / "model"), tmp_path / "a saved model"
    shown = run("export_saved_model", f"--model_dir={model}", f"--output_dir={saved}")
    assert "A fresh process loaded it: 6 calls, largest difference 0.0e+00." in shown
    texts = ["--text=the [MASK] runs.", "--text=[MASK] sleeps", "--format=json"]
    by_saved_model, by_directory = (
        [json.loads(line) for line in run("fill_mask", f"--model={folder}", *texts).splitlines()]
        for folder in (saved, model)
    )
    assert [record["text"] for record in by_saved_model] == ["the [MASK] runs.", "[MASK] sleeps"]
    for left, right in zip(by_saved_model, by_directory, strict=True):
        assert [c["token"] for c in left["masks"][0]] == [c["token"] for c in right["masks"][0]]
        assert len(left["masks"][0]) == 5
