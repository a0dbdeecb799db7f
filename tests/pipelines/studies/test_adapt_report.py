import json

import pytest

from pipelines.studies.adapt_report import Adaptation, task_figures
from pipelines.studies.adapt_words import Cut

CUT = Cut(tokens_per_word=2.0, unknown_share=0.1, tokens_per_character=0.5, spelled=0.25)


def figures(loss):
    return {"masked_lm_accuracy": 0.25, "masked_lm_loss": loss, "next_sentence_accuracy": 0.6}


def adaptation(**changes):
    values = {
        "model": "bert",
        "missing_heads": [],
        "new_tokens": 3,
        "steps": (20, 15),
        "original": figures(2.3),
        "adapted": figures(1.5),
        "guesses": {**figures(2.5), "masked_lm_accuracy": 0.125},
        "cut_before": CUT,
        "cut_after": CUT,
        "commands": ["keras-bert split_sentences"],
    }
    return Adaptation(**{**values, **changes})


def test_the_first_line_says_what_training_did_beside_guessing():
    line = adaptation().lines()[0]
    assert "costs 1.000 nats a character, -28.6% against the model as it came" in line
    assert "-33.3% against guessing by frequency" in line


def test_a_model_without_the_head_is_not_what_is_compared_with():
    lines = adaptation(original={}, missing_heads=["masked words"]).lines()
    assert "1.000 nats a character, -33.3% against guessing by frequency, with which" in lines[0]
    assert "as it came" not in lines[0]
    assert any("came without a head for masked words" in line for line in lines)


def test_a_model_that_knew_less_than_guessing_is_not_what_is_compared_with():
    line = adaptation(original=figures(9.0)).lines()[0]
    assert "-33.3% against guessing by frequency, which the model as it came does not reach" in line


def test_guessing_is_one_column_of_the_table():
    lines = [line for line in adaptation().lines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[0] == ["held-out text", "guessing", "as it came", "adapted"]
    assert cells[2] == ["masked word, nats a character", "1.500", "1.400", "1.000"]
    assert cells[3] == ["masked token, accuracy", "12.5%", "25.0%", "25.0%"]


@pytest.mark.parametrize(("loss", "warned"), [(2.0, False), (2.4, True), (4.0, True)])
def test_a_model_that_is_hardly_better_than_guessing_is_warned_of(loss, warned):
    lines = adaptation(adapted=figures(loss)).lines()
    assert any("learned little more" in line for line in lines) == warned


def runs(name, scores):
    return [{name: score, "eval_loss": 1.0, "seed": 1} for score in scores]


@pytest.mark.parametrize(
    ("name", "adapted", "gain", "words"),
    [
        ("eval_f1", [0.50, 0.52, 0.51], -1, "worse by more than chance: eval_f1. Keep the model"),
        ("eval_f1", [0.60, 0.63, 0.62], 0, "No difference is more than chance"),
        ("eval_mean_absolute_error", [0.50, 0.52, 0.51], 1, "better by more than chance"),
    ],
)
def test_the_interval_says_whether_the_adapted_model_is_the_better_one(name, adapted, gain, words):
    (figure,) = task_figures(runs(name, [0.60, 0.62, 0.61]), runs(name, adapted))
    assert figure.gain == gain
    told = [line for line in adaptation(task=[figure]).lines() if "than chance" in line]
    assert [words in line for line in told] == [True]


def test_the_report_and_its_values_are_written(tmp_path):
    report, values = adaptation(
        task=task_figures(runs("eval_accuracy", [None] * 3), runs("eval_accuracy", [0.5] * 3))
    ).write(tmp_path)
    assert report.read_text().endswith("```sh\nkeras-bert split_sentences\n```\n")
    read = json.loads(values.read_text())
    assert read["steps"] == {"taken": 20, "best": 15}
    assert read["task"][0]["original"] == [0.0] * 3
    assert read["adapted"]["unknown_share"] == 0.1
