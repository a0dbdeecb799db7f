import signal

import pytest

from tests.support.toy_training import toy_run


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
