"""A run that is killed, stopped or damaged ends with the bits of a run that was not."""

import shutil
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.support.pretraining_run import (
    RECORDED,
    config_with_dropout,
    finish,
    kill_at,
    metrics,
    outcome,
    run,
    run_here,
    shorter_shard,
    start,
    two_workers,
)

pytestmark = pytest.mark.slow

MIRRORED = {"distribution_strategy": "mirrored", "num_logical_devices": 2}
WORKERS = {"distribution_strategy": "multi_worker_mirrored"}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    config = config_with_dropout(tmp_path_factory.mktemp("config"))
    return {
        **RECORDED,
        "bert_config_file": config,
        "init_checkpoint": None,
        "shuffle": True,
        "save_checkpoints_steps": 4,
        "log_steps": 3,  # means over lines that no save falls on
        "ema_decay": 0.9,
    }


@pytest.fixture(scope="module")
def unbroken(flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    run_here(folder, **flags)
    return folder


@pytest.mark.usefixtures("keyboard")
def test_kill_9_even_inside_a_save_and_stops_change_no_bit(flags, unbroken, tmp_path, capsys):
    killed = start(tmp_path, program=("tests.support.killed_while_saving", "12"), **flags)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    # It costs that save only.
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert [name for name in left if name.startswith("step-")] == ["step-00000004", "step-00000008"]
    (half_done,) = (name for name in left if name.endswith(".incomplete"))
    assert (tmp_path / "checkpoints" / half_done / "checkpoint.json").exists()

    kill_at(start(tmp_path, **flags), tmp_path, 18)
    for step, number in ((22, signal.SIGINT), (26, signal.SIGTERM), (30, signal.SIGHUP)):
        stopped = start(tmp_path, **flags)
        kill_at(stopped, tmp_path, step, number)
        said = finish(stopped, 128 + number)
        assert "resuming from step " in said
        assert "which is saved; the same command continues" in said
    run_here(tmp_path, **flags)
    assert outcome(tmp_path) == outcome(unbroken)
    assert not list((tmp_path / "checkpoints").glob(".*"))
    run_here(tmp_path, **flags)
    assert "this run is finished" in capsys.readouterr().out


@pytest.mark.long
def test_kill_9_around_the_border_of_two_phases_changes_no_bit(flags, tmp_path):
    flags = {
        **flags,
        "num_train_steps": 12,
        "num_warmup_steps": 2,
        "save_checkpoints_steps": 3,
        "log_steps": 1,
        "phase2_input_file": shorter_shard(tmp_path / "phase2.tfrecord", length=32, predictions=5),
        "phase2_num_train_steps": 6,
        "phase2_max_seq_length": 32,
        "phase2_max_predictions_per_seq": 5,
        "phase2_train_batch_size": 6,
        "phase2_learning_rate": 5e-4,
    }
    run_here(tmp_path / "whole", **flags)
    for step in (5, 7):  # continues before the border, from step 3; and on it, from step 6
        killed = start(tmp_path / "killed", **flags)
        kill_at(killed, tmp_path / "killed", step)
    run_here(tmp_path / "killed", **flags)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    rates = {line["step"]: line["learning_rate"] for line in metrics(tmp_path / "whole")}
    assert rates[6] == pytest.approx(1e-3 * 7 / 12)
    assert rates[7] == pytest.approx(5e-4 * 6 / 12)


@pytest.mark.long
def test_two_replicas_average_their_weights_as_one_device_does(flags, tmp_path):
    flags = {**flags, "bert_config_file": RECORDED["bert_config_file"]}  # without dropout
    run(tmp_path / "two", **flags, **MIRRORED)
    run_here(tmp_path / "one", **flags)
    one, two = (
        load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two")
    )
    assert set(one) == set(two)
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=2e-5, err_msg=name)


@pytest.mark.long
def test_two_workers_of_which_one_dies_and_returns_change_no_bit(flags, tmp_path):
    def workers(folder):
        return [start(folder, environment, **flags, **WORKERS) for environment in two_workers()]

    for process in workers(tmp_path / "whole"):
        finish(process)
    environments = two_workers()
    chief, other = (start(tmp_path / "killed", e, **flags, **WORKERS) for e in environments)
    kill_at(other, tmp_path / "killed", 13)
    returned = start(tmp_path / "killed", environments[1], **flags, **WORKERS)
    finish(chief)
    finish(returned)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


def test_workers_that_do_not_see_the_same_checkpoints_stop_in_one_sentence(
    flags, unbroken, tmp_path
):
    before_the_end = "checkpoints/step-00000036"
    shutil.copytree(unbroken / before_the_end, tmp_path / "one" / before_the_end)
    folders = (tmp_path / "one", tmp_path / "other")
    processes = [
        start(folder, environment, **flags, **WORKERS)
        for folder, environment in zip(folders, two_workers(), strict=True)
    ]
    for process in processes:
        assert "newest checkpoints are of the steps 36, 0; give them one" in finish(process, code=1)
