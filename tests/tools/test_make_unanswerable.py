"""make_unanswerable as a user runs it."""

import json

from tests.support.squad_files import write_articles
from tools import make_unanswerable


def test_it_writes_a_file_and_says_how_many_were_moved(tmp_path, capsys):
    source, output = write_articles(tmp_path / "train.json"), tmp_path / "moved.json"
    flags = [f"--input_file={source}", f"--output_file={output}", "--share=1"]
    assert make_unanswerable.main(flags) == 0
    assert capsys.readouterr().out == "48 questions, 48 of them also with another passage\n"
    assert json.loads(output.read_text())["version"] == "v2.0"


def test_a_missing_file_is_named(tmp_path, capsys):
    flags = [f"--input_file={tmp_path}/no.json", f"--output_file={tmp_path}/x.json"]
    assert make_unanswerable.main(flags) == 1
    assert "no.json" in capsys.readouterr().err
