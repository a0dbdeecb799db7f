"""Measures what the trainer adds to the bare compiled step, and what splitting the CPU costs.

Three ways train the same model on the same shapes, each in a process of its own, in turns:
`step` calls the compiled step again and again on one prepared batch; `trainer` is the whole loop
with input, logging and a checkpoint; `mirrored` is the loop over two logical CPUs.

Example:
  python -m tools.benchmarks.training --model_size=mini --train_batch_size=32 --num_steps=20
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_MODEL_SIZE = FLAGS.string("model_size", "mini", "A published size.")
_BATCH = FLAGS.integer("train_batch_size", 32, "Examples of a step.", lower_bound=2)
_LENGTH = FLAGS.integer("max_seq_length", 128, "Word pieces of an example.", lower_bound=5)
_VOCAB_SIZE = FLAGS.integer("vocab_size", 30522, "Word pieces of the model.", lower_bound=100)
_PRECISION = FLAGS.string("precision", "float32", "What layers compute in.")
_STEPS = FLAGS.integer("num_steps", 20, "Steps of a measurement, after five of warm-up.")
_ROUNDS = FLAGS.integer("rounds", 3, "How often each way is measured.", lower_bound=1)
_WAYS = FLAGS.words("ways", ["step", "trainer", "mirrored"], "Which ways to measure.")
_CHILD = FLAGS.string("child", None, "Measures one case in this process (used by the tool itself).")

_WARM_UP, _PREDICTIONS = 5, 20


def measure(way: str, case: dict[str, Any]) -> dict[str, float]:
    """Measures one way in this process: seconds to the first step's end, and seconds a step."""
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.planning.made_up_batches import made_up_examples
    from keras_bert_impl.training.batches import ArrayBatches
    from keras_bert_impl.training.config import TrainingConfig
    from keras_bert_impl.training.precision import dtype_policy
    from keras_bert_impl.training.pretraining_objective import PretrainingObjective
    from keras_bert_impl.training.strategy import make_devices

    start = time.monotonic()
    mirrored = way == "mirrored"
    training = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=_WARM_UP + case["num_steps"],
        num_warmup_steps=1,
        batch_size=case["batch"],
        precision=case["precision"],
        distribution_strategy="mirrored" if mirrored else "one_device",
        num_logical_devices=2 if mirrored else 1,
        log_steps=5,
        save_checkpoints_steps=_WARM_UP + case["num_steps"] // 2,
    )
    devices = make_devices(training)
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        model = BertPretrainer(
            named_config(case["model_size"], case["vocab_size"]),
            dtype=dtype_policy(training.precision),
        )
    examples = made_up_examples(4 * case["batch"], case["length"], _PREDICTIONS, case["vocab_size"])
    batches = ArrayBatches(examples, case["batch"], seed=1)
    run = _bare_steps if way == "step" else _whole_loop
    first, seconds = run(model, PretrainingObjective(), batches, training, devices)
    return {"first_step_seconds": first - start, "step_seconds": seconds}


def _bare_steps(
    model: Any, objective: Any, batches: Any, training: Any, devices: Any
) -> tuple[float, float]:
    """The compiled step on one prepared batch; gives the first step's end and seconds a step."""
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep

    state = TrainingState(model, training, devices)
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, training)
    inputs = step.prepare([next(batches.batches_from(0))], 0, [1e-4])
    times = []
    for _ in range(training.num_train_steps):
        step.metrics(step.run(*inputs)[0])
        times.append(time.monotonic())
    return times[0], (times[-1] - times[_WARM_UP - 1]) / (len(times) - _WARM_UP)


def _whole_loop(
    model: Any, objective: Any, batches: Any, training: Any, devices: Any
) -> tuple[float, float]:
    """The training loop; gives when its first figures were there, and seconds a step after them."""
    from keras_bert_impl.training.loop import train
    from keras_bert_impl.training.metric_files import read_json_lines
    from keras_bert_impl.training.run_directory import RunDirectory

    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.open(folder)
        train(model, objective, batches, training, run, devices=devices)
        lines = read_json_lines(run.metrics)
    # The first line's interval holds the compilation.
    seconds = [training.batch_size / line["examples_per_second"] for line in lines[1:]]
    return math.nan, statistics.fmean(seconds)


def _run() -> None:
    child = _CHILD.value
    case = {
        "model_size": _MODEL_SIZE.value,
        "batch": _BATCH.value,
        "length": _LENGTH.value,
        "vocab_size": _VOCAB_SIZE.value,
        "precision": _PRECISION.value,
        "num_steps": _STEPS.value,
    }
    ways, rounds = _WAYS.value, _ROUNDS.value
    if child:
        words = json.loads(child)
        print(json.dumps(measure(words["way"], words["case"])))
        return
    results: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            words = json.dumps({"way": way, "case": case})
            command = [sys.executable, "-m", "tools.benchmarks.training", f"--child={words}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results[way].append(json.loads(done.stdout.splitlines()[-1]))
    _show(case, results)


def _show(case: dict[str, Any], results: dict[str, list[dict[str, float]]]) -> None:
    print(", ".join(f"{name} {value}" for name, value in case.items()), f"{os.cpu_count()} cores")
    print("way           step s   spread  examples/s  first step s  ratio")
    base = None
    for way, measured in results.items():
        seconds = sorted(one["step_seconds"] for one in measured)
        middle = statistics.median(seconds)
        base = base or middle
        first = statistics.median(one["first_step_seconds"] for one in measured)
        spread = (seconds[-1] - seconds[0]) / middle
        line = {
            "way": way,
            "step_seconds": round(middle, 4),
            "spread": round(spread, 3),
            "examples_per_second": round(case["batch"] / middle, 2),
            **({} if math.isnan(first) else {"first_step_seconds": round(first, 1)}),
            "ratio_to_first_way": round(middle / base, 3),
        }
        print(
            f"{way:10} {middle:9.4f} {spread:8.1%} {case['batch'] / middle:11.2f} {first:13.1f} "
            f"{middle / base:6.3f}"
        )
        print(json.dumps({**case, **line}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
