"""A run that is killed, stopped or damaged ends with the bits of a run that was not."""

import signal

import pytest

from tests.support.pretraining_run import (
    RECORDED,
    config_with_dropout,
    finish,
    kill_at,
    outcome,
    run_here,
    start,
    two_workers,
)

pytestmark = pytest.mark.slow

WORKERS = {"distribution_strategy": "multi_worker_mirrored"}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    config = config_with_dropout(tmp_path_factory.mktemp("config"))
    return {
        **RECORDED,
        "bert_config_file": config,
        "init_checkpoint": None,
        "shuffle": True,
        "num_train_steps": 20,
        "save_checkpoints_steps": 4,
        "log_steps": 3,  # means over lines that no save falls on
        "ema_decay": 0.9,
    }


@pytest.fixture(scope="module")
def unbroken(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    run_here(folder, **flags)
    return folder


def test_kill_9_even_inside_a_save_and_a_stop_change_no_bit(flags, unbroken, tmp_path, capsys):
    killed = start(tmp_path, program=("tests.support.killed_while_saving", "12"), **flags)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    # It costs that save only.
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert [name for name in left if name.startswith("step-")] == ["step-00000004", "step-00000008"]
    (half_done,) = (name for name in left if name.endswith(".incomplete"))
    assert (tmp_path / "checkpoints" / half_done / "checkpoint.json").exists()

    stopped = start(tmp_path, **flags)
    kill_at(stopped, tmp_path, 13, signal.SIGTERM)
    said = finish(stopped, 128 + signal.SIGTERM)
    assert "resuming from step 8 of 20" in said
    assert "which is saved; the same command continues" in said
    run_here(tmp_path, **flags)
    assert outcome(tmp_path) == outcome(unbroken)
    assert not list((tmp_path / "checkpoints").glob(".*"))
    run_here(tmp_path, **flags)
    assert "this run is finished" in capsys.readouterr().out


@pytest.mark.long
def test_two_workers_of_which_one_dies_and_both_start_again_change_no_bit(flags, tmp_path):
    def workers(folder):
        return [start(folder, environment, **flags, **WORKERS) for environment in two_workers()]

    for process in workers(tmp_path / "whole"):
        finish(process)
    chief, other = workers(tmp_path / "killed")
    kill_at(other, tmp_path / "killed", 13)
    assert "another worker was lost" in finish(chief, code=1)
    for process in workers(tmp_path / "killed"):
        finish(process)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
