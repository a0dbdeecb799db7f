"""Measures what the trainer adds to the bare compiled step, and what splitting the CPU costs.

The same model trains on the same shapes in several ways, each in a process of its own, in turns:
  step      the compiled step again and again on one prepared batch: what cannot be avoided
  trainer   the whole loop: shards, logging every fifth step, no checkpoint before the end
  saving    the same with one checkpoint in the middle: what a save costs, in all
  mirrored  the same loop over two logical CPUs, the batch split between them
  half      half the batch, two such processes at once with half of the cores each: the ideal that
            mirrored could reach if replicas exchanged nothing
  command   run_pretraining itself, from the start of its process to the end of its first step

Example:
  python -m tools.benchmarks.training --model_size=mini --train_batch_size=16 --num_steps=20
  python -m tools.benchmarks.training --model_size=base --train_batch_size=8 --ways=command
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_MODEL_SIZE = FLAGS.string("model_size", "mini", "A published size.")
_BATCH = FLAGS.integer("train_batch_size", 16, "Examples of a step.", lower_bound=2)
_LENGTH = FLAGS.integer("max_seq_length", 128, "Tokens of an example.", lower_bound=25)
_VOCAB_SIZE = FLAGS.integer(
    "vocab_size", 30522, "Tokens in the model's vocabulary.", lower_bound=100
)
_PRECISION = FLAGS.string("precision", "float32", "What layers compute in.")
_STEPS = FLAGS.integer("num_steps", 20, "Steps of a measurement, after five of warm-up.")
_ROUNDS = FLAGS.integer("rounds", 3, "How often each way is measured.", lower_bound=1)
_WAYS = FLAGS.words(
    "ways",
    ["step", "trainer", "saving", "mirrored", "half"],
    "Which ways to measure; see above.",
)
_CHILD = FLAGS.string("child", None, "Measures one case in this process (used by the tool itself).")

_WARM_UP, _PREDICTIONS, _LOG_STEPS = 5, 20, 5
_SAVE_STEPS = 1000  # the default of --save_checkpoints_steps


def measure(way: str, case: dict[str, Any], folder: str) -> dict[str, float]:
    """Measures one way here: `seconds` a step, and for how many of them a save `stopped` it."""
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.training.config import TrainingConfig, dtype_policy
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.strategy import make_devices
    from pipelines.inputs.pretraining import PretrainingBatches

    mirrored = way == "mirrored"
    rows = case["batch"] // 2 if way == "half" else case["batch"]
    training = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=_WARM_UP + case["num_steps"],
        num_warmup_steps=1,
        train_batch_size=rows,
        precision=case["precision"],
        distribution_strategy="mirrored" if mirrored else "one_device",
        num_logical_devices=2 if mirrored else 1,
        log_steps=_LOG_STEPS,
        save_checkpoints_steps=_WARM_UP + case["num_steps"] // (2 if way == "saving" else 1),
    )
    devices = make_devices(training)
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        model = BertPretrainer(
            named_config(case["model_size"], case["vocab_size"]),
            dtype=dtype_policy(training.precision),
        )
    shards = [str(Path(folder) / "made_up.tfrecord")]
    batches = PretrainingBatches(shards, rows, case["length"], _PREDICTIONS, seed=1)
    run = _bare_steps if way == "step" else _whole_loop
    return run(model, PretrainingObjective(), batches, training, devices)


def _bare_steps(
    model: Any, objective: Any, batches: Any, training: Any, devices: Any
) -> dict[str, float]:
    """The compiled step on one prepared batch."""
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep

    state = TrainingState(model, training, devices)
    step = TrainingStep(state, objective, training)
    inputs = step.prepare([batches.batch_at(0)], 0, [1e-4])
    times = []
    for _ in range(training.num_train_steps):
        step.metrics(step.run(*inputs)[0])
        times.append(time.monotonic())
    return {"seconds": (times[-1] - times[_WARM_UP - 1]) / (len(times) - _WARM_UP)}


def _whole_loop(
    model: Any, objective: Any, batches: Any, training: Any, devices: Any
) -> dict[str, float]:
    """The training loop, by its own log."""
    from keras_bert_impl.training.loop import train
    from keras_bert_impl.training.metric_writers import read_json_lines
    from keras_bert_impl.training.phases import one_phase
    from keras_bert_impl.training.run_directory import RunDirectory
    from keras_bert_impl.training.state import TrainingState

    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.open(folder)
        state = TrainingState(model, training, devices)
        train(state, objective, one_phase(batches, training), training, run)
        lines = read_json_lines(run.metrics)
        stopped = read_json_lines(run.saves)[0]["stopped_seconds"]
    lines = lines[_WARM_UP // _LOG_STEPS :]  # the first line's interval holds the compilation
    rates = [line["examples_per_second"] for line in lines]
    seconds = statistics.fmean(training.train_batch_size / rate for rate in rates)
    return {"seconds": seconds, "stopped": stopped}


def write_shard(folder: Path, case: dict[str, Any]) -> None:
    """Writes records, a configuration and a vocabulary for the ways that start from files."""
    import tensorflow as tf

    from keras_bert_impl.config import named_config
    from keras_bert_impl.planning import made_up_examples

    rows, vocab_size = 4 * case["batch"], case["vocab_size"]
    features = made_up_examples(rows, case["length"], _PREDICTIONS, vocab_size)
    with tf.io.TFRecordWriter(str(folder / "made_up.tfrecord")) as writer:
        for row in range(rows):
            example = tf.train.Example()
            for name, values in features.items():
                kind = example.features.feature[name]
                numbers = kind.float_list if values.dtype == "float32" else kind.int64_list
                numbers.value.extend(values[row].tolist())
            writer.write(example.SerializeToString())
    config = named_config(case["model_size"], vocab_size).to_google()
    (folder / "bert_config.json").write_text(json.dumps(config))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = special + [f"token{number}" for number in range(len(special), vocab_size)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")


def _first_step_of_the_command(case: dict[str, Any], folder: Path) -> float:
    """Seconds from the start of run_pretraining's process until its first step is logged."""
    with tempfile.TemporaryDirectory() as run:
        flags = {
            "input_file": folder / "made_up.tfrecord",
            "bert_config_file": folder / "bert_config.json",
            "output_dir": run,
            "max_seq_length": case["length"],
            "train_batch_size": case["batch"],
            "precision": case["precision"],
            "num_train_steps": 1000,
            "log_steps": 1,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.run_pretraining", "--do_train", *words],
            stderr=subprocess.DEVNULL,
        )
        log = Path(run) / "metrics.jsonl"
        while not (log.exists() and log.read_text()) and process.poll() is None:
            time.sleep(0.02)
        seconds = time.monotonic() - start
        process.kill()
        process.wait()
        return seconds


def _in_children(way: str, case: dict[str, Any], folder: Path) -> dict[str, float]:
    """Runs a way in a process of its own (`half`: in two at once); gives the slower one."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    children = []
    for share in [cores[:half], cores[half:]] if way == "half" and half else [cores]:
        words = {"way": way, "case": case, "folder": str(folder), "cores": share}
        command = [sys.executable, "-m", "tools.benchmarks.training"]
        command.append(f"--child={json.dumps(words)}")
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    figures = [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]
    return max(figures, key=lambda each: each["seconds"])


def _run() -> None:
    if child := _CHILD.value:
        words = json.loads(child)
        os.sched_setaffinity(0, words["cores"])  # before TensorFlow makes its threads
        print(json.dumps(measure(words["way"], words["case"], words["folder"])))
        return
    case = {
        "model_size": _MODEL_SIZE.value,
        "batch": _BATCH.value,
        "length": _LENGTH.value,
        "vocab_size": _VOCAB_SIZE.value,
        "precision": _PRECISION.value,
        "num_steps": _STEPS.value,
    }
    results: dict[str, list[dict[str, float]]] = {way: [] for way in _WAYS.value}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shard(folder, case)
        for _ in range(_ROUNDS.value):
            for way, measured in results.items():
                if way == "command":
                    measured.append({"seconds": _first_step_of_the_command(case, folder)})
                else:
                    measured.append(_in_children(way, case, folder))
    _show(case, results)


def _show(case: dict[str, Any], results: dict[str, list[dict[str, float]]]) -> None:
    cores = len(os.sched_getaffinity(0))
    print(", ".join(f"{name} {value}" for name, value in case.items()) + f", {cores} cores")
    print(f"{'way':10} {'seconds':>9} {'spread':>7}")
    seconds = {way: [each["seconds"] for each in measured] for way, measured in results.items()}
    middle = {way: statistics.median(measured) for way, measured in seconds.items()}
    for way, measured in seconds.items():
        spread = (max(measured) - min(measured)) / middle[way]
        print(f"{way:10} {middle[way]:9.4f} {spread:7.1%}")
    ratios = {
        f"{one}/{other}": round(middle[one] / middle[other], 3)
        for one, other in (
            ("trainer", "step"),
            ("mirrored", "trainer"),
            ("mirrored", "step"),
            ("mirrored", "half"),
        )
        if one in middle and other in middle
    }
    if "saving" in middle and "trainer" in middle and "step" in middle:
        save = max(0.0, middle["saving"] - middle["trainer"]) * case["num_steps"]
        every = middle["trainer"] + save / _SAVE_STEPS
        ratios |= {
            "a save in steps": round(save / middle["step"], 2),
            "training stands still for, in steps": round(
                statistics.median(each["stopped"] for each in results["saving"]) / middle["step"], 2
            ),
            f"trainer/step, a save every {_SAVE_STEPS} steps": round(every / middle["step"], 3),
        }
    for name, ratio in ratios.items():
        print(f"{name:42} {ratio:6.3f}")
    print(json.dumps({**case, "cores": cores, "seconds": seconds, **ratios}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
