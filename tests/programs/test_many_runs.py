"""run_classifier with several seeds, as a user runs it: killed, stopped, repeated."""

import json
import signal
import time

import pytest

from tests.support.glue_files import write_cola
from tests.support.model_folders import write_start
from tests.support.programs import Program
from tools import run_classifier

STEPS = 12  # of a run


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
        "--save_checkpoints_steps=3",
        "--notrim_padding",  # each length of a batch costs seconds of tracing
        "--kernels=plain",
        "--do_train",
        *flags,
    ]


def send_at_a_new_checkpoint(words, checkpoints, number):
    """Starts the program, and sends a signal as soon as it has saved; gives what it printed."""
    before, process = set(checkpoints.glob("step-*")), Program(words)
    give_up = time.monotonic() + 300
    while not set(checkpoints.glob("step-*")) - before:
        assert process.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(number)
    return process.communicate()[0], process.returncode


@pytest.mark.slow
def test_no_finished_run_is_lost_and_the_stopped_one_continues_to_the_same_bits(tmp_path):
    write_start(tmp_path / "model")
    write_cola(tmp_path / "cola", train=STEPS * 8 // 3)
    out = tmp_path / "runs"
    words = command(tmp_path, out, "--do_eval", "--do_predict", "--num_seeds=2", "--seed=1")
    first, second = out / "seed-1", out / "seed-2"

    # Killed without warning in the second run: the first stays as it is.
    _, code = send_at_a_new_checkpoint(words, second / "checkpoints", signal.SIGKILL)
    assert code == -signal.SIGKILL
    before = (first / "result.json").stat().st_mtime_ns

    # Stopped in good order, and finished by the third call.
    said, code = send_at_a_new_checkpoint(words, second / "checkpoints", signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert "Stopped; finished runs and checkpoints are kept, and the same command" in said
    assert not (second / "result.json").exists()
    assert run_classifier.main(words[2:]) == 0
    assert (first / "result.json").stat().st_mtime_ns == before
    values = json.loads((out / "runs.json").read_text())
    assert [run["seed"] for run in values["runs"]] == [1, 2]
    assert values["complete"]
    assert len((second / "CoLA.tsv").read_text().splitlines()) == 6

    # Each run is the run that its own flag file repeats.
    alone = tmp_path / "alone"
    flags = [f"--flagfile={second}/flags.cfg", f"--output_dir={alone}"]
    assert run_classifier.main(flags) == 0
    weights = [(run / "model" / "model.safetensors").read_bytes() for run in (second, alone)]
    assert weights[0] == weights[1]
