import json
import math

import numpy as np

from keras_bert_impl.training.learning_curve import (
    CurveStyle,
    Guess,
    draw_learning_curve,
    draw_panels,
    panels_of,
    read_guesses,
    write_guesses,
)
from keras_bert_impl.training.run_directory import RunDirectory


def pretraining_line(step, loss=6.0, next_sentence=0.7, share=0.25):
    return {
        "step": step,
        "loss": loss + next_sentence,
        "masked_lm_loss": loss,
        "next_sentence_loss": next_sentence,
        "masked_lm_accuracy": share,
        "next_sentence_accuracy": share,
        "learning_rate": 1e-4,
        "held_out": "a set",
    }


def of(lines, evaluations=(), guesses=None, **style):
    return panels_of(lines, evaluations, guesses or {}, CurveStyle(**style))


def points(axes, label):
    """The line of a legend's entry, as pairs."""
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return list(zip(*map(np.ndarray.tolist, map(np.asarray, line.get_data())), strict=True))


def test_pretraining_has_a_panel_for_each_loss_and_each_accuracy():
    lines = [pretraining_line(10), pretraining_line(20, 5.0)]
    figure = draw_panels(of(lines, [pretraining_line(20, 5.5)]))
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == [
        "Masked words: loss",
        "Next sentence: loss",
        "Masked words: accuracy",
        "Next sentence: accuracy",
    ]
    loss, *_ = figure.axes
    assert points(loss, "training") == [(10, 6.0), (20, 5.0)]
    assert points(loss, "evaluation: 5.5") == [(20, 5.5)]  # its newest value


def test_a_head_that_does_not_learn_has_no_panel():
    lines = [{**pretraining_line(1), "loss": 6.0}]
    assert [panel.title for panel in of(lines)] == ["Masked words: loss", "Masked words: accuracy"]


def test_guessing_is_a_dotted_line_with_its_words_and_value():
    guesses = {"masked_lm_accuracy": Guess("guessing the most frequent token", 0.0521)}
    figure = draw_panels(of([pretraining_line(1)], guesses=guesses))
    loss, _, accuracy, _ = figure.axes
    (guess,) = (line for line in accuracy.lines if line.get_linestyle() == ":")
    assert guess.get_label() == "guessing the most frequent token: 0.0521"
    assert set(guess.get_ydata()) == {0.0521}
    shown = [text.get_text() for text in accuracy.get_legend().get_texts()]
    assert guess.get_label() in shown
    assert all(line.get_linestyle() != ":" for line in loss.lines)
    assert figure.get_supxlabel().split("; ")[-1].startswith("dotted: what guessing reaches")
    assert "dotted" not in draw_panels(of([pretraining_line(1)])).get_supxlabel()


def test_scores_that_are_all_0_have_the_whole_axis_above_them():
    lines, evaluations = [{"step": 1, "loss": 1.0}], [{"step": 1, "f1": 0.0}]
    _, axes = draw_panels(of(lines, evaluations, full_score=100.0)).axes
    assert axes.get_ylim() == (0.0, 100.0)


def test_values_that_are_no_numbers_are_left_out():
    lines = [{"step": step, "loss": loss} for step, loss in enumerate([math.nan, 2.0, math.inf])]
    evaluations = [{"step": 2, "loss": math.nan, "f1": None, "held_out": "a set"}]
    (panel,) = of(lines, evaluations)
    assert panel.trained == [(1, 2.0)]
    assert panel.evaluated == []
    draw_panels([panel])
    assert of([{"step": 1, "loss": math.nan}]) == []


def test_a_guess_that_is_not_defined_is_not_drawn():
    evaluations = [{"step": 1, "pearson": 0.5}]
    guesses = {"pearson": Guess("always the mean", math.nan)}
    _, panel = of([{"step": 1, "loss": 1.0}], evaluations, guesses)
    assert panel.guess is None


def test_each_figure_has_a_panel_and_values_below_0_are_in_it():
    evaluation = {"step": 5, "loss": 2.0, "spearman": -0.2, "mean_squared_error": 2.0}
    lines = [{"step": 5, "loss": 3.0, "mean_squared_error": 3.0}]
    panels = of(lines, [evaluation])  # the error is the loss: it is drawn once
    assert [panel.title for panel in panels] == ["Loss: mean squared error", "Spearman"]
    bottom, top = draw_panels(panels).axes[1].get_ylim()
    assert bottom < -0.2
    assert top > 0


def test_percent_is_drawn_as_percent_with_trainings_share_in_the_same_unit():
    lines = [{"step": 1, "loss": 1.0, "accuracy": 0.5}]
    evaluations = [{"step": 1, "loss": 1.0, "accuracy": 90.0, "f1": 40.0, "f1_PER": 30.0}]
    loss, accuracy, scores = of(lines, evaluations, scores=("accuracy", "f1"), full_score=100.0)
    assert accuracy.trained == [(1, 50.0)]
    assert accuracy.evaluated == [(1, 90.0)]
    assert (accuracy.unit, accuracy.most) == ("share of right answers (%)", 100.0)
    assert scores.title == "F1"
    assert loss.trained == [(1, 1.0)]


def test_trainings_accuracy_is_left_out_where_it_is_another_figure():
    lines = [{"step": 1, "loss": 1.0, "accuracy": 0.9}]
    evaluations = [{"step": 1, "loss": 1.0, "accuracy": 0.4}]
    _, panel = of(lines, evaluations, trained=())
    assert (panel.trained, panel.evaluated) == ([], [(1, 0.4)])
    assert [panel.title for panel in of(lines, trained=())] == ["Loss"]


def test_accuracy_ends_at_the_best_that_it_can_be():
    evaluations = [{"step": 1, "accuracy": 0.99}]
    _, axes = draw_panels(of([{"step": 1, "loss": 1.0}], evaluations)).axes
    assert axes.get_ylim() == (0.0, 1.05)


def test_the_picture_is_made_of_a_runs_files_also_of_one_that_kept_no_guesses(tmp_path):
    run = RunDirectory.open(tmp_path)
    assert draw_learning_curve(run) is None
    run.metrics.write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")
    run.evaluations.write_text(json.dumps({"step": 1, "loss": 1.5, "accuracy": 0.5}) + "\n")
    assert draw_learning_curve(run) == run.learning_curve
    before = run.learning_curve.read_bytes()
    assert before.startswith(b"\x89PNG")
    write_guesses(run, {"accuracy": Guess("always the same", 0.25)})
    draw_learning_curve(run)
    assert run.learning_curve.read_bytes() != before


def test_guesses_survive_the_file_to_the_bit_and_a_run_may_have_none(tmp_path):
    run = RunDirectory.open(tmp_path)
    assert read_guesses(run) == {}
    guesses = {"f1": Guess("언제나 같은 답", 1 / 3), "loss": Guess("always the mean", 1e-30)}
    write_guesses(run, guesses)
    assert read_guesses(run) == guesses
