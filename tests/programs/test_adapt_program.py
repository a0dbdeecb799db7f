"""A tiny model is adapted to a made language, whole, with the real tools in their processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.support.adaptation import write_language, write_model
from tests.support.programs import ROOT

FLAGS = (
    "--init_checkpoint=model",
    "--input_file=text.txt",
    "--output_dir=adapted",
    "--held_out_every=10",
    "--num_new_tokens=40",
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--num_train_steps=300",
    "--learning_rate=1e-3",
    "--num_workers=1",
    "--pretraining_flags=--kernels=plain --save_checkpoints_steps=50 --eval_steps=75",
)
RESULTS = ("model/model.safetensors", "model/vocab.txt", "report.md", "adaptation.json")


def start(folder):
    words = [sys.executable, "-m", "keras_bert_impl", "adapt", *FLAGS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder):
    process = start(folder)
    out, error = process.communicate(timeout=1200)
    assert process.returncode == 0, error[-3000:]
    return out, error


def results(folder):
    return {name: (folder / "adapted" / name).read_bytes() for name in RESULTS}


def inputs(folder):
    folder.mkdir()
    changes = {"hidden_size": 48, "intermediate_size": 96, "num_attention_heads": 4}
    write_model(folder / "model", heads=False, **changes)
    write_language(folder / "text.txt", 200)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = inputs(tmp_path_factory.mktemp("adapt") / "whole")
    return folder, *finish(folder)


@pytest.mark.slow
def test_masked_words_and_tokens_a_word_get_better(undisturbed):
    folder, out, _ = undisturbed
    values = json.loads((folder / "adapted" / "adaptation.json").read_text())
    original, adapted = (values["text"][name] for name in ("original", "adapted"))
    assert adapted["coverage"]["tokens_per_word"] < original["coverage"]["tokens_per_word"] / 3
    right = adapted["figures"]["masked_lm_accuracy"]
    assert right > 2 * adapted["guesses"]["masked_lm_accuracy"]
    nats = [one["figures"]["nats_per_character"] for one in (original, adapted)]
    assert nats[1] < min(nats[0], adapted["guesses"]["nats_per_character"])
    assert "without a head for masked words and next sentences" in out


def stop_after_a_save(folder, stopped_by):
    """Starts the adaptation, and stops it once its training has saved again."""
    saves = "adapted/cells/trained-*/checkpoints/step-*"
    before = {*folder.glob(saves)}
    process = start(folder)
    while process.poll() is None and not {*folder.glob(saves)} - before:
        time.sleep(0.05)
    os.kill(process.pid, stopped_by)
    _, error = process.communicate(timeout=120)
    assert "Traceback" not in error
    assert not (folder / "adapted" / "model").exists()
    return process.returncode


@pytest.mark.slow
def test_after_stops_in_training_the_same_command_gives_the_same_bytes(undisturbed, tmp_path):
    folder = inputs(tmp_path / "stopped")
    assert stop_after_a_save(folder, signal.SIGTERM) == 143
    assert stop_after_a_save(folder, signal.SIGKILL) == -9
    finish(folder)
    assert results(folder) == results(undisturbed[0])
