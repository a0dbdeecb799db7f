import signal

import pytest

from keras_bert_impl.training.run import Hook, Hooks
from tests.support.toy_training import toy_run


class Noted(Hook):
    """Notes the events that reach it."""

    def __init__(self, name, notes, fails=False):
        self.name, self.notes, self.fails = name, notes, fails

    def begin(self, run):
        self.notes.append(f"{self.name} begins")

    def after_step(self, run):
        self.notes.append(f"{self.name} sees step {run.step}")

    def close(self, run):
        self.notes.append(f"{self.name} is closed")
        if self.fails:
            raise OSError(self.name)


def test_events_reach_the_hooks_in_their_order_and_what_they_leave_out_does_nothing(tmp_path):
    notes, run = [], toy_run(tmp_path, step=7)
    hooks = Hooks([Noted("a", notes), Hook(), Noted("b", notes)])
    with hooks.open(run):
        hooks.tell("begin", run)
        hooks.tell("before_call", run)
        hooks.tell("after_step", run)
        hooks.tell("after_call", run)
        hooks.tell("end", run)
    assert notes[:4] == ["a begins", "b begins", "a sees step 7", "b sees step 7"]


def test_every_hook_is_closed_though_the_run_and_another_hook_fail(tmp_path):
    notes, run = [], toy_run(tmp_path)
    hooks = Hooks([Noted("a", notes), Noted("b", notes, fails=True)])
    with pytest.raises(OSError, match="b"), hooks.open(run):
        raise ValueError
    assert notes == ["b is closed", "a is closed"]


@pytest.mark.parametrize(("step", "logged"), [(9, False), (10, True), (20, True), (25, True)])
def test_figures_are_logged_at_multiples_and_at_the_end(tmp_path, step, logged):
    assert toy_run(tmp_path, step, log_steps=10, num_train_steps=25).is_logged == logged


def test_never_is_a_step_due_every_0_steps(tmp_path):
    assert not toy_run(tmp_path, step=0).is_due(0)
    assert toy_run(tmp_path, step=6).is_due(3)


def test_a_worker_that_is_alone_stops_at_once_and_others_when_all_voted(tmp_path):
    run = toy_run(tmp_path)
    assert not run.stop_requested()
    run.stop(signal.SIGTERM)
    assert run.stop_requested()
    voted = toy_run(tmp_path, metrics={"stop_votes": 0.5})
    assert not voted.stop.requested
    assert voted.stop_requested()
    assert voted.stop.requested  # so that this worker's exit code says it, too
