"""score_answers as a user runs it."""

import json

import pytest

from tests.support.squad_files import write_squad
from tools import score_answers


@pytest.fixture
def words(tmp_path):
    data = write_squad(tmp_path / "dev.json", 4)
    (tmp_path / "predictions.json").write_text(json.dumps({f"q{n}": "dog" for n in range(4)}))
    return [f"--data_file={data}", f"--predictions_file={tmp_path}/predictions.json"]


def test_figures_are_printed(words, capsys):
    assert score_answers.main(words) == 0
    figures = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert set(figures) == {"exact_match", "f1"}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--version_2_with_negative", "--null_odds_file=/no/odds.json"],
            "/no/odds.json: no such file",
        ),
        (["--null_odds_file=odds.json"], "add --version_2_with_negative"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(words, capsys, flags, sentence):
    assert score_answers.main([*words, *flags]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("Error: ")
    assert sentence in error
    assert len(error.splitlines()) == 1
