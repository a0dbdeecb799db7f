"""Each hook by itself; what they do together in a run is told in test_loop.py."""

import math
import signal

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.checkpoints import read_description
from keras_bert_impl.training.hooks import (
    CheckFinite,
    EvaluateHeldOut,
    LogSteps,
    Profile,
    SaveCheckpoints,
    ShowProgress,
    check_finite,
    standard_hooks,
)
from keras_bert_impl.training.time_budget import TimeBudget
from tests.support.toy_training import Recorder, toy_chunk, toy_run

GOOD = {"loss": 1.0, "gradient_norm": 2.0, "loss_scale": 1.0, "skipped_steps": 0.0}


def at(run, step, **metrics):
    """The run at another step, with figures."""
    run.state.step, run.metrics = step, {**GOOD, **metrics}
    return run


def test_optional_hooks_are_there_when_they_have_something_to_do():
    usual = [type(hook) for hook in standard_hooks()]
    assert usual == [CheckFinite, LogSteps, ShowProgress, Profile, SaveCheckpoints]
    assert [type(hook) for hook in standard_hooks(dict)] == [*usual, EvaluateHeldOut]


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["loss", "gradient_norm"])
def test_a_figure_that_is_not_finite_stops_the_run_and_names_the_examples(tmp_path, name, value):
    run = at(toy_run(tmp_path), 3, **{name: value})
    with pytest.raises(
        UserError, match=rf"Step 3: the {name.replace('_', ' ')} is {value}; its"
    ) as e:
        CheckFinite().after_step(run)
    assert run.batches.where(2) in str(e.value)


def test_in_float16_an_infinite_gradient_is_a_step_to_skip_as_long_as_the_scale_can_fall():
    infinite = {**GOOD, "gradient_norm": math.inf}
    check_finite(3, {**infinite, "loss_scale": 2.0}, scaled=True, where=str)
    with pytest.raises(UserError, match=r"gradient norm is inf.*or `precision=bfloat16`"):
        check_finite(3, infinite, scaled=True, where=str)
    with pytest.raises(UserError, match="loss is nan"):
        check_finite(3, {**GOOD, "loss": math.nan, "loss_scale": 2.0}, scaled=True, where=str)


class FakeClock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self):
        return self.now


def test_the_progress_line_shows_the_loss_and_skipped_steps(tmp_path, capsys):
    clock = FakeClock()
    run, hook = toy_run(tmp_path), ShowProgress(clock=clock)
    run.chunk = toy_chunk()
    hook.before_call(run)
    for step, (loss, seconds) in enumerate([(1.0, 5.0), (4.0, 10.0), (2.0, 20.0)], start=1):
        clock.now = seconds
        hook.after_step(at(run, step, loss=loss, skipped_steps=2.0))
        hook.after_call(run)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "train: 2 of 20 steps (10 %), 0.2 steps/s, 1m30s left, loss 2.5000, 2 skipped"
    assert second.endswith("loss 2.0000, 2 skipped")  # the mean since the line before


def test_calls_that_compile_do_not_enter_the_time_left(tmp_path, capsys):
    clock = FakeClock()
    run, hook = toy_run(tmp_path), ShowProgress(clock=clock)
    for step, seconds in enumerate([90, 2, 90, 2, 8]):
        run.chunk, run.compiles = toy_chunk(step), seconds == 90
        hook.before_call(run)
        clock.now += seconds
        hook.after_step(at(run, step + 1))
        hook.after_call(run)
    hook.close(run)
    assert capsys.readouterr().err.splitlines() == [
        "train: 1 of 20 steps (5 %), loss 1.0000",
        "train: 3 of 20 steps (15 %), 0.5 steps/s, 34s left, loss 1.0000",
        "train: 5 of 20 steps (25 %), 0.25 steps/s, 1m00s left, loss 1.0000",
        "train: 5 of 20 steps in 3m12s (0.026 steps/s)",
    ]


def saved(run):
    run.checkpoints.wait()
    return run.checkpoints.steps()


def test_a_checkpoint_is_saved_where_it_is_due_at_the_end_and_before_a_stop(tmp_path):
    run, hook = toy_run(tmp_path, save_checkpoints_steps=7), SaveCheckpoints()
    for step in (6, 7, 8, 20):
        hook.after_call(at(run, step))
    assert saved(run) == [20, 7]
    run.stopping = True
    hook.after_call(at(run, 9))
    assert saved(run) == [20, 9, 7]


def best(run):
    run.checkpoints.wait()
    return read_description(run.directory.best_checkpoint)["step"]


def test_an_evaluation_is_written_with_its_set_and_the_best_is_kept(tmp_path):
    losses, recorder = [2.0, 1.0, 3.0], Recorder()
    run = toy_run(tmp_path, recorder=recorder, eval_steps=5)
    hook = EvaluateHeldOut(lambda: {"loss": losses.pop(0)}, held_out="set a")
    hook.begin(run)
    for step in (4, 5, 10, 15):
        hook.after_call(at(run, step))
    assert [(kind, step) for kind, step, _ in recorder.lines] == [("eval", n) for n in (5, 10, 15)]
    assert recorder.lines[0][2] == {"loss": 2.0, "held_out": "set a"}
    assert best(run) == 10


def test_of_a_finished_run_another_held_out_set_chooses_nothing(tmp_path):
    run = toy_run(tmp_path, step=10, eval_steps=5, early_stopping_evals=2)  # it ended early
    run.directory.model.mkdir()
    run.directory.write_finished_step(10, best_step=5)
    EvaluateHeldOut(pytest.fail, held_out="another set").begin(run)
    assert run.ended_early
    assert not run.directory.best_checkpoint.exists()


def test_the_last_step_is_evaluated_unless_evaluations_are_off(tmp_path):
    for eval_steps, count in ((7, 1), (0, 0)):
        recorder = Recorder()
        run = toy_run(tmp_path, recorder=recorder, eval_steps=eval_steps)
        EvaluateHeldOut(lambda: {"loss": 1.0}).after_call(at(run, 20))
        assert len(recorder.lines) == count


def test_a_run_of_hours_is_not_evaluated_during_training_where_its_user_says_so(tmp_path):
    for eval_steps, count in ((None, 1), (0, 0)):
        recorder = Recorder()
        run = toy_run(tmp_path, recorder=recorder, eval_steps=eval_steps, train_hours=1.0)
        run.budget = TimeBudget(1.0, {"spent": 1800.0})
        EvaluateHeldOut(lambda: {"loss": 1.0}, keep_best=False).after_call(at(run, 20))
        assert len(recorder.lines) == count


def test_a_stop_in_an_evaluation_ends_it_saves_and_stops_the_run(tmp_path):
    recorder = Recorder()
    run = toy_run(tmp_path, recorder=recorder, eval_steps=5)
    EvaluateHeldOut(lambda: run.stop(signal.SIGTERM)).after_call(at(run, 5))
    assert run.stopping
    assert recorder.lines == []
    assert saved(run) == [5]


def test_time_spent_on_evaluations_is_no_time_of_steps(tmp_path, monkeypatch):
    ticks = iter([100.0, 107.0])
    run = toy_run(tmp_path, eval_steps=5)
    monkeypatch.setattr("keras_bert_impl.training.hooks.time.monotonic", lambda: next(ticks, 200.0))
    EvaluateHeldOut(lambda: {"loss": 1.0}).after_call(at(run, 5))
    assert run.paused_seconds == 7.0


def test_the_lowest_of_an_error_is_the_best(tmp_path):
    errors = [0.9, 0.1, 0.5]
    run, name = toy_run(tmp_path, eval_steps=5), "mean_absolute_error"
    hook = EvaluateHeldOut(lambda: {"loss": 1.0, name: errors.pop(0)}, best_by=name)
    hook.begin(run)
    for step in (5, 10, 15):
        hook.after_call(at(run, step))
    assert best(run) == 10


def test_a_save_comes_before_an_evaluation_when_the_last_one_is_a_minute_old(tmp_path):
    clock = FakeClock()
    run = toy_run(tmp_path, save_checkpoints_steps=1000, eval_steps=5)
    hook = SaveCheckpoints(clock)
    hook.begin(run)
    for step, seconds in ((5, 30.0), (9, 70.0), (10, 80.0), (15, 100.0)):
        clock.now = seconds
        hook.after_call(at(run, step))
    assert saved(run) == [10]


def test_an_evaluation_is_no_part_of_the_time_left(tmp_path, capsys):
    clock = FakeClock()
    run, hook = toy_run(tmp_path, num_train_steps=200), ShowProgress(clock=clock)
    for step in range(60):
        run.chunk = toy_chunk(step)
        hook.before_call(run)
        clock.now += 1.0
        hook.after_step(at(run, step + 1))
        hook.after_call(run)
        if step == 30:
            clock.now += 500.0
            run.paused_seconds += 500.0
    *_, last = capsys.readouterr().err.splitlines()
    assert "2m2" in last.split("steps/s, ")[1]
