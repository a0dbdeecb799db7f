"""run_classifier as a user runs it: killed in the middle, repeated, scored and answered."""

import signal
import time

import pytest

from tests.support import compiling, programs
from tests.support.glue_files import write_cola
from tests.support.model_folders import write_start
from tests.support.programs import Program

STEPS = 300


def command(inputs, output, *flags):
    return [
        "tools",
        "run_classifier",
        "--task_name=CoLA",
        f"--data_dir={inputs}/cola",
        f"--init_checkpoint={inputs}/model",
        f"--output_dir={output}",
        "--max_seq_length=12",
        "--train_batch_size=8",
        "--num_train_epochs=3",
        "--learning_rate=1e-3",
        "--save_checkpoints_steps=20",
        "--group_by_length",
        "--do_train",
        *flags,
    ]


def run_until_checkpoint_then_kill(words, checkpoints):
    """Starts the program and kills it, without warning, when its first checkpoint is there."""
    process = Program(words, compiling.anew())
    give_up = time.monotonic() + 120
    while not list(checkpoints.glob("step-*")):
        assert process.poll() is None, process.printed()
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.long
@pytest.mark.slow
def test_the_same_command_continues_a_killed_run_to_the_same_bits(tmp_path):
    write_start(tmp_path / "model")
    write_cola(tmp_path / "cola", train=STEPS * 8 // 3)
    killed, whole = tmp_path / "killed", tmp_path / "whole"

    run_until_checkpoint_then_kill(command(tmp_path, killed), killed / "checkpoints")
    assert not (killed / "model").exists()
    words = command(tmp_path, killed, "--do_eval", "--do_predict")
    again = programs.run(words, compiling.anew())
    assert again.returncode == 0, again.stderr
    assert "eval_matthews_correlation = 1.0" in again.stdout
    assert f"global_step = {STEPS}" in again.stdout
    assert len((killed / "CoLA.tsv").read_text().splitlines()) == 6

    words = command(tmp_path, whole)
    programs.run(words, compiling.anew(), check=True)
    weights = [(run / "model" / "model.safetensors").read_bytes() for run in (killed, whole)]
    assert weights[0] == weights[1]
