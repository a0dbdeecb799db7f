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
    WarnOfPlateau,
    check_finite,
    standard_hooks,
)
from tests.support.toy_training import Recorder, toy_chunk, toy_run

GOOD = {"loss": 1.0, "gradient_norm": 2.0, "loss_scale": 1.0, "skipped_steps": 0.0}


def at(run, step, **metrics):
    """The run at another step, with figures."""
    run.state.step, run.metrics = step, {**GOOD, **metrics}
    return run


def test_optional_hooks_are_there_when_they_have_something_to_do():
    usual = [type(hook) for hook in standard_hooks()]
    assert usual == [CheckFinite, LogSteps, ShowProgress, Profile, SaveCheckpoints]
    more = [type(hook) for hook in standard_hooks(evaluate=dict, frequency_loss=6.0)]
    assert set(more) - set(usual) == {WarnOfPlateau, EvaluateHeldOut}
    assert more.index(SaveCheckpoints) < more.index(EvaluateHeldOut)


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


def test_skipped_steps_are_told_at_the_end_and_only_then(tmp_path):
    logged = []
    run = toy_run(tmp_path, logged=logged)
    CheckFinite().end(at(run, 20))
    assert logged == []
    CheckFinite().end(at(run, 20, skipped_steps=3.0))
    assert logged[0].startswith("3 of 20 steps were skipped because float16 overflowed")


def test_only_logged_steps_are_written(tmp_path):
    recorder = Recorder()
    run, hook = toy_run(tmp_path, recorder=recorder, log_steps=2), LogSteps()
    hook.begin(run)
    for step in (1, 2, 3):
        run.chunk = toy_chunk(step - 1)
        hook.after_step(at(run, step))
    ((kind, step, figures),) = recorder.lines
    assert (kind, step, figures["learning_rate"]) == ("train", 2, 1e-3)
    assert figures["examples_per_second"] > 0


def plateau_told(tmp_path, losses, **changes):
    """The lines that a run with these logged losses gives, one every 100 steps."""
    logged = []
    run = toy_run(tmp_path, logged=logged, log_steps=100, num_train_steps=10000, **changes)
    hook = WarnOfPlateau(frequency_loss=6.0)
    for number, loss in enumerate(losses, start=1):
        hook.after_step(at(run, 100 * number, masked_lm_loss=loss))
    return logged


def test_a_loss_that_stays_where_guessing_is_is_pointed_out_once(tmp_path):
    (line,) = plateau_told(tmp_path, [5.99] * 60)
    assert line.startswith(
        "Step 2900: the masked-LM loss (5.99) is still what guessing"
    )  # from 1000
    assert "(6.00); try a smaller `learning_rate` or a longer warm-up" in line


def test_a_loss_that_falls_is_no_plateau(tmp_path):
    assert plateau_told(tmp_path, [5.9] * 60) == []
    assert plateau_told(tmp_path, [7.0] * 9 + [5.0] * 60) == []


def test_twice_the_warm_up_is_waited_for(tmp_path):
    (line,) = plateau_told(tmp_path, [5.99] * 60, num_warmup_steps=1500)
    assert line.startswith("Step 4900: ")


class FakeClock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self):
        return self.now


def shown_after(tmp_path, capsys, calls, steps_before=0):
    """The lines of a run of 200 steps, of calls (steps, tokens of a batch, seconds)."""
    clock = FakeClock()
    run, hook = toy_run(tmp_path, num_train_steps=200), ShowProgress(clock=clock)
    step = steps_before
    for steps, tokens, seconds in calls:
        run.chunk = toy_chunk(step, steps, tokens=tokens)
        hook.before_call(at(run, step))
        clock.now += seconds
        for _ in range(steps):
            step += 1
            hook.after_step(at(run, step))
        hook.after_call(run)
    hook.close(run)
    return capsys.readouterr().err.splitlines()


def test_the_closing_line_counts_all_steps(tmp_path, capsys):
    *_, last = shown_after(tmp_path, capsys, [(1, 0, 30.0), *[(1, 0, 0.5)] * 199])
    assert last == "train: 200 of 200 steps in 2m10s, 30s of it compiling (2 steps/s)"


def test_a_resumed_run_says_how_many_steps_are_its_own(tmp_path, capsys):
    *_, last = shown_after(tmp_path, capsys, [(1, 0, 30.0), *[(1, 0, 0.5)] * 99], steps_before=100)
    assert last.startswith("train: 200 of 200 steps, 100 of them in 1m20s, 30s of it compiling")


def test_the_time_left_does_not_count_the_compiling_of_any_length_of_batches(tmp_path, capsys):
    """Fine-tuning has batches of several lengths; each is compiled when it first comes."""
    early = [(1, tokens, 10.0) for tokens in (960, 1920, 3840)]
    usual = [(1, tokens, 1.0) for tokens in (960, 1920, 3840)]
    lines = shown_after(tmp_path, capsys, [*early, *usual * 4, (1, 7680, 10.0), *usual])
    assert lines[:3] == [
        f"train: {n} of 200 steps ({s} %), {n}0s spent compiling, loss 1.0000"
        for n, s in [(1, 0), (2, 1), (3, 2)]
    ]
    assert [line.split(", ")[1:3] for line in lines[3:-1]] == [
        ["1 steps/s", "3m07s left"],  # 13 steps are done
        ["1 steps/s", "3m04s left"],  # and 16
    ]


def test_a_shorter_last_call_is_compiled_as_well(tmp_path, capsys):
    *_, last = shown_after(tmp_path, capsys, [(50, 0, 60.0), (50, 0, 25.0), (10, 0, 60.0)])
    assert last == "train: 110 of 200 steps in 2m25s, 2m00s of it compiling (2 steps/s)"


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


def test_the_progress_line_of_a_run_without_steps_is_left_out(tmp_path, capsys):
    ShowProgress().close(toy_run(tmp_path))
    assert capsys.readouterr().err == ""


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


def test_what_saves_cost_is_written_when_they_are_complete(tmp_path):
    recorder = Recorder()
    run, hook = toy_run(tmp_path, recorder=recorder), SaveCheckpoints()
    hook.after_call(at(run, 7))
    run.checkpoints.settle()
    hook.close(run)
    ((kind, step, figures),) = recorder.lines
    assert (kind, step) == ("save", 7)
    assert set(figures) == {"stopped_seconds", "written_seconds", "bytes"}
    assert figures["bytes"] > 0


def test_a_save_comes_before_the_note_of_the_one_before_it(tmp_path):
    class Full(Recorder):
        def write(self, kind, step, figures):
            raise OSError("no room")

    run, hook = toy_run(tmp_path, recorder=Full()), SaveCheckpoints()
    run.state.step = 6
    run.save()
    run.checkpoints.settle()
    with pytest.raises(UserError, match="no room"):
        hook.after_call(at(run, 7))
    assert saved(run) == [7, 6]


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


def test_without_a_loss_the_highest_of_another_figure_is_kept(tmp_path):
    scores = [50.0, 80.0, 70.0]
    run = toy_run(tmp_path, eval_steps=5)
    hook = EvaluateHeldOut(lambda: {"f1": scores.pop(0)}, best_by="f1")
    hook.begin(run)
    for step in (5, 10, 15):
        hook.after_call(at(run, step))
    assert best(run) == 10


def test_the_last_step_is_evaluated_unless_evaluations_are_off(tmp_path):
    for eval_steps, count in ((7, 1), (0, 0)):
        recorder = Recorder()
        run = toy_run(tmp_path, recorder=recorder, eval_steps=eval_steps)
        EvaluateHeldOut(lambda: {"loss": 1.0}).after_call(at(run, 20))
        assert len(recorder.lines) == count


def test_a_run_that_stops_is_not_evaluated(tmp_path):
    run = toy_run(tmp_path, eval_steps=5)
    run.stopping = True
    EvaluateHeldOut(pytest.fail).after_call(at(run, 5))


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
