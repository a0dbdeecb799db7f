import json
import math

import pytest

from pipelines.adaptation.report import (
    Adaptation,
    TaskFigure,
    TextFigures,
    nats_per_character,
)
from pipelines.adaptation.words import Coverage

CUT = Coverage(words=100, tokens_per_word=2.0, unknown_share=0.1, unknown_length=5.0, alphabet=20)


def figures(nats, **guesses):
    values = {"masked_lm_accuracy": 0.25, "nats_per_character": nats, "global_step": 7}
    return TextFigures(values, guesses, CUT)


def adaptation(**changes):
    values = {
        "model": "bert",
        "missing_heads": [],
        "new_tokens": 3,
        "steps": (20, 15),
        "text": {
            "original": figures(2.0, masked_lm_accuracy=0.125),
            "adapted": figures(1.0),
        },
        "commands": ["keras-bert split_sentences"],
    }
    return Adaptation(**{**values, **changes})


def test_an_unknown_word_is_told_by_its_loss_and_then_spelled():
    assert nats_per_character(0.5, {"[UNK]": 3}, CUT) == pytest.approx(0.1 + math.log(20))
    mixed = nats_per_character(0.5, {"[UNK]": 1, "##abcde": 1}, CUT)
    assert mixed == pytest.approx((2 * 0.5 + 5 * math.log(20)) / 10)


def test_the_table_has_a_column_a_model_with_guessing_in_brackets():
    lines = adaptation().lines()
    assert "costs 1.000 nats a character in place of 2.000 (-50.0%)" in lines[0]
    (header,) = (line for line in lines if line.startswith("| held-out text"))
    assert [cell.strip() for cell in header.split("|")[2:-1]] == [
        "as it came", "adapted",
    ]  # fmt: skip
    (accuracy,) = (line for line in lines if line.startswith("| masked token, accuracy"))
    assert "| 25.0% (12.5%) | 25.0%" in accuracy
    assert not any("head" in line for line in lines if not line.startswith("|"))


@pytest.mark.parametrize(("after", "warned"), [(1.7, False), (1.95, True), (2.5, True)])
def test_a_model_that_is_hardly_better_than_guessing_is_warned_of(after, warned):
    models = {
        "original": figures(9.0, nats_per_character=0.5),  # of coarser tokens
        "adapted": figures(after, nats_per_character=2.0),
    }
    assert any("learned little more" in line for line in adaptation(text=models).lines()) == warned


@pytest.mark.parametrize(
    ("name", "adapted", "verdict", "words"),
    [
        ("eval_f1", [0.50, 0.52, 0.51], -1, "worse by more than chance: eval_f1. Keep the model"),
        ("eval_f1", [0.60, 0.63, 0.62], 0, "No difference is more than chance"),
        ("eval_mean_absolute_error", [0.50, 0.52, 0.51], 1, "better by more than chance"),
    ],
)
def test_the_interval_says_whether_the_adapted_model_is_the_better_one(
    name, adapted, verdict, words
):
    task = TaskFigure.of(name, [0.60, 0.62, 0.61], adapted)
    assert task.verdict == verdict
    told = [line for line in adaptation(task=[task]).lines() if "than chance" in line]
    assert [words in line for line in told] == [True]


def test_the_report_and_its_values_are_written(tmp_path):
    made = adaptation(task=[TaskFigure.of("eval_accuracy", [math.nan] * 3, [0.5] * 3)])
    report, values = made.write(tmp_path)
    assert report.read_text().endswith("```sh\nkeras-bert split_sentences\n```\n")
    read = json.loads(values.read_text())
    assert read["steps"] == {"taken": 20, "best": 15}
    assert read["task"][0]["difference"] is None
    assert read["text"]["adapted"]["coverage"]["alphabet"] == 20
