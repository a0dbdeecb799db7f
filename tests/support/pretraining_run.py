"""The tool run_pretraining on the tiny recorded data set."""

import json
import os
import signal
import socket
import time
from pathlib import Path

from tests.support.programs import Program

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "pretrain"

RECORDED = {
    "input_file": GOLDEN / "train.tfrecord",
    "bert_config_file": GOLDEN / "bert_config.json",
    "vocab_file": GOLDEN / "vocab.txt",
    "init_checkpoint": GOLDEN / "init" / "bert_model.ckpt",
    "max_seq_length": 64,
    "max_predictions_per_seq": 10,
    "train_batch_size": 8,
    "learning_rate": 1e-3,
    "num_train_steps": 40,
    "num_warmup_steps": 10,
    "log_steps": 1,
    "do_train": True,
    "shuffle": False,
    "kernels": "plain",
}
"""The flags of the run that was recorded with the original's own code."""


def config_with_dropout(folder):
    """A configuration file like the recorded one, but smaller and with dropout."""
    values = json.loads((GOLDEN / "bert_config.json").read_text())
    values |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    values |= {"num_hidden_layers": 1}
    path = Path(folder) / "bert_config.json"
    path.write_text(json.dumps(values))
    return path


def words(output_dir, **flags):
    """The flags as they are written."""
    return [
        f"--{'' if value is not False else 'no'}{name}"
        + ("" if isinstance(value, bool) else f"={value}")
        for name, value in {"output_dir": output_dir, **flags}.items()
        if value is not None
    ]


def start(output_dir, environment=None, program=("tools.run_pretraining",), **flags):
    """Starts the tool, or a program that wraps it; gives the process."""
    process = Program([*program, *words(output_dir, **flags)], os.environ | (environment or {}))
    process.before = _metrics_written(output_dir)
    return process


def _metrics_written(output_dir):
    """When the metrics file was written last; 0 without one."""
    path = Path(output_dir) / "metrics.jsonl"
    return path.stat().st_mtime_ns if path.exists() else 0


def finish(process, code=0):
    """Waits for the end; gives what was printed (both streams)."""
    out, error = process.communicate()
    assert process.returncode == code, error[-3000:]
    return out + error


def run(output_dir, **flags):
    """Runs the tool to its end."""
    return finish(start(output_dir, **flags))


def run_here(output_dir, **flags):
    """Runs the tool to its end in this process, which has loaded TensorFlow."""
    from tools.run_pretraining import main

    assert main(words(output_dir, **flags)) == 0


def steps_logged(output_dir):
    """The step of the last line of the metrics file that is whole; 0 without one."""
    path = Path(output_dir) / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["step"] if whole else 0


def kill_at(process, output_dir, step, with_signal=signal.SIGKILL):
    """Sends a signal as soon as this process has logged a step; it must still be running."""
    while _metrics_written(output_dir) == process.before or steps_logged(output_dir) < step:
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.02)
    process.send_signal(with_signal)
    if with_signal == signal.SIGKILL:
        process.communicate()
        assert process.returncode == -signal.SIGKILL


def metrics(output_dir):
    """The logged lines without what depends on the clock."""
    lines = (Path(output_dir) / "metrics.jsonl").read_text().splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if "per_second" not in name}
        for line in lines
    ]


def outcome(output_dir):
    """All that a run must repeat to the bit: weights, moments and figures."""
    folder = Path(output_dir)
    newest = max((folder / "checkpoints").iterdir())
    return (
        (folder / "model" / "model.safetensors").read_bytes(),
        (newest / "state.data-00000-of-00001").read_bytes(),
        metrics(folder),
    )


def two_workers():
    """The environments of two workers on this machine."""
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            ports.append(free.getsockname()[1])
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": n}})}
        for n in range(2)
    ]


def shorter_shard(path, length, predictions):
    """The recorded examples made shorter: another phase's shard."""
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(GOLDEN / "train.tfrecord"))
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in records:
            example = tf.train.Example.FromString(content.numpy())
            for name, feature in example.features.feature.items():
                values = feature.float_list.value or feature.int64_list.value
                size = predictions if name.startswith("masked") else length
                del values[size:]
                if name == "masked_lm_positions":
                    values[:] = [min(position, length - 1) for position in values]
            writer.write(example.SerializeToString())
    return path
