import contextlib
import dataclasses
import errno
import itertools
import json
import os
import shutil
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import on_stop
from keras_bert_impl.json_files import read_log
from keras_bert_impl.options import FREE, nested, option
from keras_bert_impl.training import loop, time_budget
from keras_bert_impl.training.batches import one_phase
from keras_bert_impl.training.checkpoints import write_checkpoint
from keras_bert_impl.training.config import TrainingConfig, dtype_policy
from keras_bert_impl.training.evaluation import Evaluation
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.loop import train
from keras_bert_impl.training.run import Hook
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.time_budget import TimeBudget
from tests.support.array_batches import ArrayBatches, ArrayEvaluation
from tests.support.toy_training import ToyObjective, toy_config, toy_features, toy_model


def run(
    folder,
    evaluated=False,
    reports=None,
    features=None,
    measure=None,
    held_out=None,
    source=ArrayBatches,
    batch_size=None,
    more=(),
    options=TrainingConfig,
    settings=None,
    **changes,
):
    config = toy_config(**changes)
    size = batch_size or config.train_batch_size
    model, features = toy_model(dtype_policy(config.precision)), features or toy_features()
    if evaluated:
        measure = lambda: Evaluation(model, ToyObjective())(ArrayEvaluation(features, 32))  # noqa: E731
    result = train(
        TrainingState(model, config),
        ToyObjective(),
        one_phase(source(features, size, seed=1), config),
        config,
        RunDirectory.open(folder),
        settings=settings,
        hooks=[*more, *standard_hooks(measure, held_out)],
        log=(reports if reports is not None else []).append,
        options=options,
    )
    return result, [*model.get_weights(), *moments(result)]


def moments(result):
    optimizer = result.state.optimizer
    return [np.array(v) for v in [*optimizer.first_moments, *optimizer.second_moments]]


def averages(result):
    return [np.array(one) for one in result.state.averages]


def saved(folder):
    """The steps of the checkpoints."""
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    return [int(name.removeprefix("step-")) for name in names]


def figures(folder):
    """The logged lines without what depends on the clock."""
    lines = read_log(folder / "metrics.jsonl")
    return [{k: v for k, v in line.items() if "per_second" not in k} for line in lines]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_run_in_instalments_ends_with_the_bits_of_one_in_one_go(tmp_path):
    one, whole = run(tmp_path / "whole", ema_decay=0.9)
    first, _ = run(tmp_path / "parts", ema_decay=0.9, stop_after_step=9)
    second, parts = run(tmp_path / "parts", ema_decay=0.9)
    assert (first.step, first.finished) == (9, False)
    assert (second.resumed_from, second.finished) == (9, True)
    assert same(whole, parts)
    assert same(averages(one), averages(second))
    assert figures(tmp_path / "whole") == figures(tmp_path / "parts")


def test_a_run_with_a_plateau_gets_a_later_end_as_if_it_had_had_it_from_the_beginning(tmp_path):
    told = []
    plateau = {"schedule": "wsd", "keep_checkpoint_max": 1}
    run(tmp_path / "longer", **plateau)
    assert saved(tmp_path / "longer") == [16, 20]  # the one before the decay stays
    longer, weights = run(tmp_path / "longer", **plateau, num_train_steps=25, reports=told)
    _, whole = run(tmp_path / "whole", **plateau, num_train_steps=25)
    assert longer.resumed_from == 16
    assert "goes on from step 16, before its decay" in told[0]
    assert same(weights, whole)
    assert saved(tmp_path / "longer") == [20, 25]
    with pytest.raises(UserError, match="`num_train_steps` was 25 and is 24"):
        run(tmp_path / "longer", **plateau, num_train_steps=24)


def test_a_later_end_leaves_the_warmup_and_what_it_cannot_go_back_from(tmp_path):
    triangle = {"schedule": "wsd", "warmup_proportion": 0.5, "decay_share": 0.5}
    run(tmp_path, **triangle, num_train_steps=8)
    assert saved(tmp_path) == [4, 7, 8]
    with pytest.raises(UserError, match="`seed` was 12345 and is 1"):
        run(tmp_path, **triangle, num_train_steps=12, seed=1)
    plateau = tmp_path / "checkpoints" / "step-00000004" / "checkpoint.json"
    whole = plateau.read_text()
    plateau.write_text("{")
    with pytest.raises(UserError, match=r"4: the run gets a later end .* cannot be read"):
        run(tmp_path, **triangle, num_train_steps=12)
    assert saved(tmp_path) == [4, 7, 8]
    plateau.write_text(whole)
    run(tmp_path, **triangle, num_train_steps=12)
    rates = [line["learning_rate"] / 1e-2 for line in figures(tmp_path)]
    falling = [(12 - step) / 6 for step in range(6, 12)]
    assert rates == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1, *falling])
    with pytest.raises(UserError, match=r"warm-up takes 0\.5 of the run"):
        run(tmp_path, **{**triangle, "decay_share": 0.6})


@dataclasses.dataclass(frozen=True)
class WithEpochs:
    warmup_proportion: float = option(0.1, "A share.", resume=FREE, makes="num_warmup_steps")
    training: TrainingConfig = nested(TrainingConfig)


def test_a_later_end_leaves_the_warmup_that_was_made_of_a_share(tmp_path):
    made = {"schedule": "wsd", "options": WithEpochs, "settings": {"warmup_proportion": 0.1}}
    run(tmp_path, **made, num_train_steps=24, stop_after_step=1)
    run(tmp_path, **made, num_train_steps=30, num_warmup_steps=3, stop_after_step=4)
    rates = [line["learning_rate"] / 1e-2 for line in figures(tmp_path)]
    assert rates == pytest.approx([0, 0.5, 1, 1])


@pytest.mark.parametrize("of_second", [8, 2])
def test_a_later_end_is_refused_where_the_second_phase_had_begun_on_the_plateau(
    tmp_path, of_second
):
    later = {"schedule": "wsd", "settings": {"phase2_num_train_steps": of_second}}
    run(tmp_path, **later)
    refused = pytest.raises(UserError, match="`num_train_steps` was 20 and is 30")
    with refused if of_second == 8 else contextlib.nullcontext():
        run(tmp_path, **later, num_train_steps=30)


class Growing(ArrayBatches):
    """Batches of 10, 10, 20, 20, 30, 30, ... rows, one after the other in the order of the set."""

    def batches_from(self, step):
        parts = super().batches_from(0)
        for count in itertools.count():
            rows = [next(parts) for _ in range(min(3, 1 + count // 2))]
            yield {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}


def test_a_ramp_joins_more_and_more_micro_batches(tmp_path):
    ramp = {"accumulation_steps": 3, "batch_ramp": 0.75, "num_train_steps": 8}
    ramp["save_checkpoints_steps"] = 3
    sizes = {"batch_size": 10}
    _, ramped = run(tmp_path / "ramp", **ramp, **sizes)
    sizes_said = [line["examples_per_step"] for line in figures(tmp_path / "ramp")]
    assert sizes_said == [10, 10, 20, 20, 30, 30, 30, 30]
    _, by_hand = run(tmp_path / "hand", source=Growing, **sizes, num_train_steps=8)
    for found, expected in zip(ramped, by_hand, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    shutil.rmtree(tmp_path / "ramp" / "checkpoints" / "step-00000008")
    _, resumed = run(tmp_path / "ramp", **ramp, **sizes)
    assert same(ramped, resumed)
    # Calls end where the batch grows, at steps 2 and 4, and at saves: they take 1, 2, 3 and 1.
    in_loops = {**ramp, **sizes, "iterations_per_loop": 4, "save_checkpoints_steps": 7}
    run(tmp_path / "calls", **in_loops, stop_after_step=1)
    _, in_calls = run(tmp_path / "calls", **in_loops)
    for found, expected in zip(in_calls, ramped, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(UserError, match="`accumulation_steps` was 3 and is 2"):
        run(tmp_path / "ramp", **{**ramp, "accumulation_steps": 2})


class RowsOfCalls(Hook):
    def __init__(self):
        self.rows = []

    def after_call(self, run):
        self.rows.append(run.chunk.examples)


class Clock:
    """Seconds that pass in steps: ten each in the first half of the hours, then twenty."""

    now = 0.0

    def __call__(self):
        return self.now


class TakeTime(Hook):
    def __init__(self, clock, kill_at=None):
        self._clock, self._kill_at = clock, kill_at

    def after_step(self, run):
        self._clock.now += 10 if run.budget.share() < 0.5 else 20
        if run.step == self._kill_at:
            raise KeyboardInterrupt

    def after_call(self, run):
        run.checkpoints.wait()


def test_a_run_of_hours_follows_the_clock_to_the_end_of_its_schedule(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "TimeBudget", partial(TimeBudget, clock=clock))
    monkeypatch.setattr(time_budget, "_SAVES_AT_END", 0.0)  # they take real time
    config = {"train_hours": 0.3, "schedule": "wsd", "save_checkpoints_steps": 5}
    with pytest.raises(KeyboardInterrupt):  # the newest checkpoint is of step 65, after 900 s
        run(tmp_path, **config, more=[TakeTime(clock, kill_at=69)])
    clock.now += 1000.0  # nobody waits for it
    result, _ = run(tmp_path, **config, more=[TakeTime(clock)])
    assert result.finished
    usable, spent, idle = 0.3 * 3600 - 3, 0.0, 0.0
    for line in figures(tmp_path):
        share = (spent - idle) / (usable - idle)
        assert line["learning_rate"] == pytest.approx(1e-2 * min(share / 0.1, 1, (1 - share) / 0.2))
        took = 10 if share < 0.5 else 20
        idle += took if line["step"] in (1, 66) else 0  # where a process compiles its program
        spent += took
    assert abs(spent - usable) <= 10  # half a step
    again, _ = run(tmp_path, **config)
    assert (again.finished, again.is_new) == (True, False)
    # 55 steps of 10 s and 16 of 20 s are the first ones beyond 80 % of the hours.
    later, _ = run(tmp_path, **{**config, "train_hours": 0.4}, stop_after_step=71)
    assert (later.resumed_from, later.finished) == (71, False)


def test_hours_that_the_start_takes_are_no_training_and_that_is_said(tmp_path, caplog):
    run(tmp_path, train_hours=1e-6)
    assert "`train_hours=1e-06` is hardly more than the start takes" in caplog.text
    assert "in steps as few as 1;" in caplog.text


def test_a_later_end_makes_no_batch_smaller_than_it_was(tmp_path):
    ramp = {"accumulation_steps": 3, "batch_ramp": 0.75, "schedule": "wsd", "decay_share": 0.25}
    sizes, later = RowsOfCalls(), RowsOfCalls()
    run(tmp_path, **ramp, num_train_steps=8, batch_size=10, more=[sizes])
    assert sizes.rows == [10, 10, 20, 20, 30, 30, 30, 30]
    result, _ = run(tmp_path, **ramp, num_train_steps=16, batch_size=10, more=[later])
    assert (result.resumed_from, result.finished, later.rows) == (6, True, [30] * 10)


def test_a_line_holds_the_mean_since_the_line_before(tmp_path):
    run(tmp_path / "each")
    run(tmp_path / "third", log_steps=3)
    each, third = figures(tmp_path / "each"), figures(tmp_path / "third")
    assert [line["step"] for line in third] == [3, 6, 9, 12, 15, 18, 20]
    last = 0
    for line in third:
        steps = each[last : line["step"]]
        last = line["step"]
        for name in ("loss", "accuracy"):
            assert line[name] == pytest.approx(sum(one[name] for one in steps) / len(steps))
        for name in ("learning_rate", "gradient_norm"):
            assert line[name] == steps[-1][name]


def test_a_short_run_has_a_curve_and_is_saved_at_its_end_unless_told(tmp_path):
    run(tmp_path, log_steps=None, save_checkpoints_steps=None)
    assert [line["step"] for line in figures(tmp_path)] == list(range(1, 21))
    assert saved(tmp_path) == [20]


def test_a_checkpoint_that_is_too_old_is_followed_by_another_whatever_the_steps(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("keras_bert_impl.training.hooks.SECONDS_BETWEEN_SAVES", 1e-9)
    run(tmp_path, save_checkpoints_steps=1000, stop_after_step=5)
    assert saved(tmp_path) == [1, 2, 3, 4, 5]


def test_steps_inside_one_compiled_call_are_the_same_steps(tmp_path):
    _, single = run(tmp_path / "single")
    _, looped = run(tmp_path / "looped", iterations_per_loop=4, save_checkpoints_steps=20)
    assert all(np.allclose(a, b, rtol=0, atol=1e-6) for a, b in zip(single, looped, strict=True))
    lines = read_log(tmp_path / "looped" / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 21))
    # Steps inside one call share its time.
    rates = [line["examples_per_second"] for line in lines]
    assert [len(set(rates[first : first + 4])) for first in range(0, 20, 4)] == [1] * 5
    assert min(rates[4:]) > rates[0]  # only the first call's lines have the compiling in


@pytest.mark.parametrize("damaged", ["state.data-00000-of-00001", "checkpoint.json"])
def test_a_corrupt_newest_checkpoint_is_reported_and_the_one_before_is_used(tmp_path, damaged):
    _, expected = run(tmp_path, stop_after_step=16)
    path = tmp_path / "checkpoints" / "step-00000016" / damaged
    path.write_bytes(path.read_bytes()[:100])
    reports = []
    result, weights = run(tmp_path, reports=reports, stop_after_step=16)
    assert result.resumed_from == 14
    assert "step-00000016: this checkpoint cannot be read" in reports[0]
    assert same(expected, weights)


def test_a_corrupt_checkpoint_neither_hinders_the_save_of_its_step_nor_drives_out_good_ones(
    tmp_path,
):
    run(tmp_path, stop_after_step=14)
    newest = tmp_path / "checkpoints" / "step-00000014"
    (newest / "checkpoint.json").write_text("{")
    result, _ = run(tmp_path, stop_after_step=14, keep_checkpoint_max=1)
    assert (result.resumed_from, result.step) == (7, 14)
    assert saved(tmp_path) == [14]
    result, _ = run(tmp_path, stop_after_step=14, keep_checkpoint_max=1)
    assert result.resumed_from == 14


def failing_writes(monkeypatch, step, error):
    """The first save of a step fails; later ones do not."""
    waiting = [step]

    def write(folder, state, description, *more):
        if description["step"] in waiting:
            waiting.clear()
            raise error
        write_checkpoint(folder, state, description, *more)

    monkeypatch.setattr("keras_bert_impl.training.checkpoints.write_checkpoint", write)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(errno.ENOSPC, "No space left"), r"cannot be written \(No space"),
        (TypeError("a bug"), "a bug"),
    ],
)
def test_a_run_does_not_go_on_after_a_save_that_failed(tmp_path, monkeypatch, failure, said):
    failing_writes(monkeypatch, 7, failure)
    with pytest.raises((UserError, TypeError), match=said):
        run(tmp_path)
    assert run(tmp_path)[0].finished


def test_a_last_save_that_fails_is_an_error_whichever_hook_asked_for_it(tmp_path, monkeypatch):
    class KeepLast(Hook):
        def end(self, run):
            run.save(as_best=True)

    failing_writes(monkeypatch, 20, OSError(errno.ENOSPC, "No space left on device"))
    config = toy_config()
    batches = ArrayBatches(toy_features(), config.train_batch_size, seed=1)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\)"):
        train(
            TrainingState(toy_model(), config),
            ToyObjective(),
            one_phase(batches, config),
            config,
            RunDirectory.open(tmp_path),
            hooks=[KeepLast()],
        )


def test_flags_that_change_the_mathematics_are_named_and_refused(tmp_path):
    run(tmp_path, stop_after_step=5)
    with pytest.raises(UserError, match=r"`clip_norm` was 1\.0 and is 0\.5, `seed` was 12345"):
        run(tmp_path, clip_norm=0.5, seed=7)
    result, _ = run(tmp_path, clip_norm=0.5, allow_changed_flags=True)
    assert (result.resumed_from, result.finished) == (5, True)


@dataclasses.dataclass(frozen=True)
class MakesWarmup:
    warmup_proportion: float = option(0.1, "A share.", resume=FREE, makes="num_warmup_steps")


def test_an_option_that_makes_a_setting_is_one_itself_where_the_run_reads_it(tmp_path):
    """As a task's share of the warm-up, of which a run of hours makes no number of steps."""
    hours = {"train_hours": 1.0, "options": MakesWarmup}
    run(tmp_path, stop_after_step=1, warmup_proportion=0.1, **hours)
    with pytest.raises(UserError, match=r"`warmup_proportion` was 0\.1 and is 0\.5"):
        run(tmp_path, warmup_proportion=0.5, **hours)


def test_a_loss_that_is_no_number_stops_with_step_examples_and_remedy(tmp_path):
    with pytest.raises(UserError, match=r"Step 3: the loss is nan; its batch holds examples ") as e:
        run(tmp_path, learning_rate=1e30, clip_norm=1e30)
    order = ArrayBatches({"number": np.arange(100)}, 30, seed=1)
    third = next(order.batches_from(2))["number"]
    assert f"examples {', '.join(map(str, sorted(third)))} of the set" in str(e.value)
    assert "try a smaller `learning_rate`" in str(e.value)


def test_float16_skips_a_step_that_overflows_shows_it_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.training.state._START", 2.0**24)
    reports = []
    result, weights = run(tmp_path, precision="float16", reports=reports)
    lines = figures(tmp_path)
    skipped = [line["skipped_steps"] for line in lines]
    assert skipped[0] == 1.0
    assert 1 < skipped[-1] < 20
    assert lines[-1]["loss_scale"] == 2.0 ** (24 - skipped[-1])
    assert all(np.isfinite(weight).all() for weight in weights)
    assert f"{skipped[-1]:.0f} of 20 steps were skipped because float16 overflowed" in reports[-1]
    assert result.finished


def test_training_goes_on_while_a_checkpoint_is_being_written(tmp_path, monkeypatch):
    """The writer waits until five more steps were computed: if they waited for it, none would."""
    enough, in_time = threading.Event(), []

    def slow_write(folder, state, description, *more):
        if description["step"] == 10:
            in_time.append(enough.wait(timeout=60))
        write_checkpoint(folder, state, description, *more)

    monkeypatch.setattr("keras_bert_impl.training.checkpoints.write_checkpoint", slow_write)
    monkeypatch.setattr(
        "keras_bert_impl.training.hooks.ShowProgress.after_call",
        lambda _hook, run: enough.set() if run.step == 15 else None,
    )
    run(tmp_path, save_checkpoints_steps=10)
    assert in_time == [True]
    assert saved(tmp_path) == [10, 20]


def test_what_is_written_is_the_state_of_its_step_though_training_goes_on(tmp_path, monkeypatch):
    _, expected = run(tmp_path / "stopped", stop_after_step=10)
    waited = threading.Event()

    def late_write(folder, state, description, *more):
        waited.wait(timeout=1)
        write_checkpoint(folder, state, description, *more)

    monkeypatch.setattr("keras_bert_impl.training.checkpoints.write_checkpoint", late_write)
    run(tmp_path / "run", save_checkpoints_steps=10)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000020")
    _, restored = run(tmp_path / "run", save_checkpoints_steps=10, stop_after_step=10)
    assert same(expected, restored)


def losses_in_turn(*losses):
    """An evaluation that gives these losses one after the other."""
    left = list(losses)
    return lambda: {"loss": left.pop(0)}


def best_of(folder):
    return json.loads((folder / "best_checkpoint" / "checkpoint.json").read_text())["step"]


def evaluated_steps(folder):
    return [line["step"] for line in read_log(folder / "evaluations.jsonl")]


def test_the_best_checkpoint_is_the_one_of_the_smallest_loss_and_the_last_step_may_be_it(tmp_path):
    run(tmp_path / "a", measure=losses_in_turn(3.0, 1.0, 2.0, 1.5), eval_steps=6)
    assert evaluated_steps(tmp_path / "a") == [6, 12, 18, 20]
    assert best_of(tmp_path / "a") == 12
    run(tmp_path / "b", measure=losses_in_turn(3.0, 1.0, 2.0, 0.5), eval_steps=6)
    assert best_of(tmp_path / "b") == 20


def test_a_resumed_run_remembers_its_best(tmp_path):
    run(tmp_path, measure=losses_in_turn(1.0, 2.0), eval_steps=5, stop_after_step=10)
    run(tmp_path, measure=losses_in_turn(1.5, 1.2), eval_steps=5)
    assert best_of(tmp_path) == 5
    assert evaluated_steps(tmp_path) == [5, 10, 15, 20]


def test_a_best_checkpoint_of_a_run_that_began_anew_is_replaced_at_its_step(tmp_path):
    run(tmp_path, measure=losses_in_turn(1.0), eval_steps=5, stop_after_step=5)
    shutil.rmtree(tmp_path / "checkpoints")  # killed before the first one
    run(tmp_path, measure=losses_in_turn(2.0, 3.0, 4.0, 5.0), eval_steps=5, learning_rate=5e-3)
    kept = json.loads((tmp_path / "best_checkpoint" / "checkpoint.json").read_text())
    assert (kept["step"], kept["settings"]["learning_rate"]) == (5, 5e-3)


def test_losses_on_another_held_out_set_are_not_compared(tmp_path):
    run(tmp_path, measure=losses_in_turn(1.0), held_out="a", eval_steps=5, stop_after_step=5)
    reports, losses = [], losses_in_turn(9.0, 8.0, 7.5, 8.5)
    run(tmp_path, measure=losses, held_out="b", eval_steps=5, reports=reports)
    assert evaluated_steps(tmp_path) == [5, 5, 10, 15, 20]  # the step resumed from, too
    assert best_of(tmp_path) == 15
    assert "1 of 1 evaluations so far were of another held-out set" in reports[0]


def test_an_evaluation_that_is_no_number_is_never_the_best_nor_stands_in_its_way(tmp_path):
    run(tmp_path, measure=losses_in_turn(float("nan"), 2.0, float("nan")), eval_steps=7)
    assert best_of(tmp_path) == 14


def test_a_run_ends_early_when_nothing_gets_better_and_is_finished(tmp_path):
    said, patience = [], {"eval_steps": 3, "early_stopping_evals": 2}
    losses = losses_in_turn(3.0, 1.0, 1.5, 1.0)
    result, _ = run(tmp_path, measure=losses, reports=said, **patience)
    assert (result.step, result.finished) == (12, True)
    assert best_of(tmp_path) == 6
    assert said == [
        "Step 12 of 20: training ends early, because the held-out loss was the best at step 6 and "
        "in none of the 2 evaluations since."
    ]
    again, _ = run(tmp_path, measure=pytest.fail, **patience)
    assert (again.resumed_from, again.step, again.finished) == (12, 12, True)


def test_an_early_end_is_the_same_after_a_resume(tmp_path):
    patience = {"eval_steps": 3, "early_stopping_evals": 2}
    run(tmp_path, measure=losses_in_turn(3.0, 1.0, 1.5), stop_after_step=10, **patience)
    result, _ = run(tmp_path, measure=losses_in_turn(1.2), **patience)
    assert (result.resumed_from, result.step, result.finished) == (10, 12, True)


class Weights(Hook):
    """Takes down the weights after each step."""

    def __init__(self):
        self.seen = []

    def begin(self, run):
        self.seen.append(run.state.model.get_weights())

    def after_step(self, run):
        self.seen.append(run.state.model.get_weights())


def averages_by_hand(seen, decay):
    """Polyak's average in float64, by the formula of TensorFlow's ExponentialMovingAverage."""
    averages = [weight.astype("float64") for weight in seen[0]]
    for step, weights in enumerate(seen[1:]):
        share = min(decay, (1 + step) / (10 + step))
        averages = [share * a + (1 - share) * w for a, w in zip(averages, weights, strict=True)]
    return averages


class Closed(Hook):
    """Notes that it is closed, and fails at the first step or then."""

    def __init__(self, notes):
        self.notes = notes

    def after_step(self, run):
        raise ValueError("in a step")

    def close(self, run):
        self.notes.append(run.step)
        raise OSError("while closing")


def test_every_hook_is_closed_though_the_run_and_another_hook_fail(tmp_path):
    config, notes = toy_config(), []
    batches = ArrayBatches(toy_features(), config.train_batch_size, seed=1)
    with pytest.raises(OSError, match="while closing"):
        train(
            TrainingState(toy_model(), config),
            ToyObjective(),
            one_phase(batches, config),
            config,
            RunDirectory.open(tmp_path),
            hooks=[Closed(notes), Closed(notes)],
        )
    assert notes == [1, 1]


def test_averages_follow_the_formula_and_evaluations_see_them(tmp_path):
    config, watch, measured = toy_config(ema_decay=0.6, eval_steps=20), Weights(), []
    model = toy_model()

    def measure():
        measured.append(model.get_weights())
        return {"loss": 1.0}

    result = train(
        TrainingState(model, config),
        ToyObjective(),
        one_phase(ArrayBatches(toy_features(), config.train_batch_size, seed=1), config),
        config,
        RunDirectory.open(tmp_path),
        hooks=[watch, *standard_hooks(measure)],
    )
    expected = averages_by_hand(watch.seen, 0.6)
    for found in (measured[0], averages(result)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    assert same(model.get_weights(), watch.seen[-1])  # training goes on with its own weights
    assert not same(model.get_weights(), measured[0])


def preempted():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)  # the signal ends it
    raise AssertionError


def test_a_preemption_before_the_first_step_is_heeded(tmp_path):
    with on_stop() as outer:
        os.kill(os.getpid(), signal.SIGTERM)
        result, _ = run(tmp_path)
    assert outer.requested
    assert (result.step, result.finished) == (0, False)
    assert run(tmp_path)[0].finished


def test_a_preemption_in_an_evaluation_saves_at_once_and_evaluates_after_the_resume(tmp_path):
    result, _ = run(tmp_path, measure=preempted, eval_steps=10)
    assert (result.step, result.finished) == (10, False)
    assert evaluated_steps(tmp_path) == []
    result, _ = run(tmp_path, measure=losses_in_turn(2.0, 1.0), eval_steps=10)
    assert (result.resumed_from, result.finished) == (10, True)
    assert evaluated_steps(tmp_path) == [10, 20]


def test_a_kill_before_the_best_checkpoint_was_complete_is_made_good(tmp_path):
    run(tmp_path, measure=losses_in_turn(1.0), eval_steps=10, stop_after_step=10)
    shutil.rmtree(tmp_path / "best_checkpoint")
    run(tmp_path, measure=losses_in_turn(2.0), eval_steps=10)
    assert best_of(tmp_path) == 10


def test_a_profile_is_written_where_tensorboard_looks(tmp_path):
    run(tmp_path, profile_steps=(3, 4))
    assert list((tmp_path / "events" / "plugins" / "profile").rglob("*.xplane.pb"))
