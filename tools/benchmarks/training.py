"""Measures what the trainer adds to the bare compiled step, what splitting the CPU costs; memory.

The same model trains on the same shapes in several ways, each in a process of its own, in turns:
  step      the compiled step again and again on one prepared batch: what cannot be avoided
  trainer   the whole loop: shards, logging every fifth step, no checkpoint before the end
  saving    the same with one checkpoint in the middle: what a save costs, in all
  mirrored  the same loop over two logical CPUs, the batch split between them
  half      half the batch, two such processes at once with half of the cores each: the ideal that
            mirrored could reach if replicas exchanged nothing
  command   run_pretraining itself, from the start of its process to the end of its first step

With --memory_cases it compares plan_run's memory estimate with measured runs instead: each case
trains four steps in a process of its own, saving after each; measured is the process's peak.

Example:
  python -m tools.benchmarks.training --model_size=mini --train_batch_size=16 --num_steps=20
  python -m tools.benchmarks.training --model_size=base --train_batch_size=8 --ways=command
  python -m tools.benchmarks.training --memory_cases=mini,32,128,float32:base,8,128,bfloat16
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.options import check_options, option
from tools.benchmarks.measuring import (
    Child,
    Table,
    cores,
    in_child,
    in_turns,
    peak_bytes,
    show_json,
    spread,
)
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from keras_bert_impl.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class TrainingBenchmarkConfig:
    """The options of the timing."""

    model_size: str = option("mini", "A published size.")
    train_batch_size: int = option(16, "Examples of a step.", at_least=2)
    max_seq_length: int = option(128, "Tokens of an example.", at_least=25)
    vocab_size: int = option(30522, "Tokens in the model's vocabulary.", at_least=100)
    precision: str = option("float32", "What layers compute in.")
    num_steps: int = option(20, "Steps of a measurement, after five of warm-up.", at_least=1)
    rounds: int = option(3, "How often each way is measured.", at_least=1)
    ways: tuple[str, ...] = option(
        ("step", "trainer", "saving", "mirrored", "half"), "Which ways to measure; see above."
    )
    memory_cases: str | None = option(
        None,
        "Whose memory to measure instead, several divided by colons: size,batch,length,precision "
        "and perhaps recompute, lamb, micro=N (so many micro-batches) or mirrored (over two "
        "logical CPUs).",
    )
    child: str | None = option(None, "Measures one case here (used by the tool itself).")

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, TrainingBenchmarkConfig)

_MODULE = "tools.benchmarks.training"
_WARM_UP, _PREDICTIONS, _LOG_STEPS = 5, 20, 5
_MEMORY_STEPS = 4
_SAVE_STEPS = 1000  # the default of --save_checkpoints_steps
Case = dict[str, Any]


def _settings(mirrored: bool, **more: Any) -> "TrainingConfig":
    from keras_bert_impl.training.config import TrainingConfig

    return TrainingConfig(
        learning_rate=1e-4,
        num_warmup_steps=1,
        distribution_strategy="mirrored" if mirrored else "one_device",
        num_logical_devices=2 if mirrored else 1,
        **more,
    )


def _fresh_state(size: str, vocab_size: int, training: "TrainingConfig") -> Any:
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.training.config import dtype_policy
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.strategy import make_devices

    devices = make_devices(training)
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        config = named_config(size, vocab_size)
        model = BertPretrainer(config, dtype=dtype_policy(training.precision))
    model.encoder.recompute = training.recompute
    return TrainingState(model, training, devices)


def _train(state: Any, batches: Any, training: "TrainingConfig", folder: str) -> Any:
    """Trains with the loop that run_pretraining has; gives the run's folder."""
    from keras_bert_impl.training.loop import train
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.phases import one_phase
    from keras_bert_impl.training.run_directory import RunDirectory

    run = RunDirectory.open(folder)
    train(state, PretrainingObjective(), one_phase(batches, training), training, run)
    return run


def measure(way: str, case: Case, folder: str) -> dict[str, float]:
    """Measures one way here: `seconds` a step, and for how many of them a save `stopped` it."""
    from pipelines.inputs.pretraining import PretrainingBatches

    rows = case["batch"] // 2 if way == "half" else case["batch"]
    training = _settings(
        way == "mirrored",
        num_train_steps=_WARM_UP + case["num_steps"],
        train_batch_size=rows,
        precision=case["precision"],
        log_steps=_LOG_STEPS,
        save_checkpoints_steps=_WARM_UP + case["num_steps"] // (2 if way == "saving" else 1),
    )
    state = _fresh_state(case["model_size"], case["vocab_size"], training)
    shards = [str(Path(folder) / "made_up.tfrecord")]
    batches = PretrainingBatches(shards, rows, case["length"], _PREDICTIONS, seed=1)
    run = _bare_steps if way == "step" else _whole_loop
    return run(state, batches, training)


def _bare_steps(state: Any, batches: Any, training: "TrainingConfig") -> dict[str, float]:
    """The compiled step on one prepared batch."""
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.step import TrainingStep

    step = TrainingStep(state, PretrainingObjective(), training)
    inputs = step.prepare([batches.batch_at(0)], 0, [1e-4])
    times = []
    for _ in range(training.num_train_steps):
        step.metrics(step.run(*inputs)[0])
        times.append(time.monotonic())
    return {"seconds": (times[-1] - times[_WARM_UP - 1]) / (len(times) - _WARM_UP)}


def _whole_loop(state: Any, batches: Any, training: "TrainingConfig") -> dict[str, float]:
    """The training loop, by its own log."""
    from keras_bert_impl.json_files import read_log

    with tempfile.TemporaryDirectory() as folder:
        run = _train(state, batches, training, folder)
        lines = read_log(run.metrics)
        stopped = read_log(run.saves)[0]["stopped_seconds"]
    lines = lines[_WARM_UP // _LOG_STEPS :]  # the first line's interval holds the compilation
    rates = [line["examples_per_second"] for line in lines]
    seconds = statistics.fmean(training.train_batch_size / rate for rate in rates)
    return {"seconds": seconds, "stopped": stopped}


class _SameBatch:
    """One batch for every step."""

    num_workers = 1

    def __init__(self, batch: dict[str, Any], batch_size: int) -> None:
        self._batch, self.batch_size = batch, batch_size

    def batches_from(self, step: int) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        return itertools.repeat(self._batch)

    def where(self, step: int) -> str:
        return f"made-up examples of step {step}"


def measure_memory(case: str, vocab_size: int) -> dict[str, Any]:
    """Trains a few steps of a case in this process; gives its peak and the estimate, in bytes."""
    from keras_bert_impl.config import named_config
    from keras_bert_impl.planning import machine_bytes, made_up_examples, training_memory

    size, batch, length, precision, *rest = case.split(",")
    training = _settings(
        "mirrored" in rest,
        num_train_steps=_MEMORY_STEPS,
        train_batch_size=int(batch),
        precision=precision,
        recompute="recompute" in rest,
        optimizer="lamb" if "lamb" in rest else "adamw",
        accumulation_steps=next((int(w[6:]) for w in rest if w.startswith("micro=")), 1),
        save_checkpoints_steps=1,  # so that steps run while the copy of the one before is written
    )
    state = _fresh_state(size, vocab_size, training)
    examples = made_up_examples(int(batch), int(length), _PREDICTIONS, vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        _train(state, _SameBatch(examples, int(batch)), training, folder)
    replicas, config = training.num_logical_devices, named_config(size, vocab_size)
    parts = training_memory(config, training, int(length), _PREDICTIONS, True, replicas)
    estimate = machine_bytes(parts, replicas)
    return {"case": case, "measured": peak_bytes(), "estimate": estimate, "parts": parts}


def write_shard(folder: Path, case: Case) -> None:
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


def _first_step_of_the_command(case: Case, folder: Path) -> float:
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


def _in_children(way: str, case: Case, folder: Path) -> dict[str, float]:
    """Runs a way in a process of its own (`half`: in two at once); gives the slower one."""
    if way == "command":
        return {"seconds": _first_step_of_the_command(case, folder)}
    ours, half = cores(), len(cores()) // 2
    children = []
    for share in [ours[:half], ours[half:]] if way == "half" and half else [ours]:
        given = {"way": way, "case": case, "folder": str(folder)}
        children.append(Child(_MODULE, {"cores": share, "way": given}))
    return max((child.answer() for child in children), key=lambda each: each["seconds"])


def _run(config: TrainingBenchmarkConfig) -> None:
    if config.child:
        _measure_here(json.loads(config.child))
    elif config.memory_cases:
        _compare_memory(config.memory_cases.split(":"), config.vocab_size)
    else:
        _compare_ways(config)


def _measure_here(given: dict[str, Any]) -> None:
    if "memory" in given:
        show_json(measure_memory(**given["memory"]))
        return
    os.sched_setaffinity(0, given["cores"])  # before TensorFlow makes its threads
    show_json(measure(**given["way"]))


def _compare_memory(cases: Sequence[str], vocab_size: int) -> None:
    given = {case: {"memory": {"case": case, "vocab_size": vocab_size}} for case in cases}
    found = in_turns({case: partial(in_child, _MODULE, asked) for case, asked in given.items()})
    table = Table({"case": "", "measured GB": ".2f", "estimate GB": ".2f", "ratio": ".2f"}, 32)
    for case, (figures,) in found.items():
        measured, estimate = figures["measured"] / 1e9, figures["estimate"] / 1e9
        table.row(case, measured, estimate, estimate / measured)
        show_json(figures)


def _compare_ways(config: TrainingBenchmarkConfig) -> None:
    case = {
        "model_size": config.model_size,
        "batch": config.train_batch_size,
        "length": config.max_seq_length,
        "vocab_size": config.vocab_size,
        "precision": config.precision,
        "num_steps": config.num_steps,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shard(folder, case)
        ways = {way: partial(_in_children, way, case, folder) for way in config.ways}
        results = in_turns(ways, config.rounds)
    _show(case, results)


def _show(case: Case, results: dict[str, list[dict[str, float]]]) -> None:
    print(", ".join(f"{name} {value}" for name, value in case.items()) + f", {len(cores())} cores")
    seconds = {way: [each["seconds"] for each in measured] for way, measured in results.items()}
    middle = {way: statistics.median(measured) for way, measured in seconds.items()}
    table = Table({"way": "", "seconds": ".4f", "spread": ".1%"}, first=10)
    for way, measured in seconds.items():
        table.row(way, middle[way], spread(measured))
    pairs = (
        ("trainer", "step"),
        ("mirrored", "trainer"),
        ("mirrored", "step"),
        ("mirrored", "half"),
    )
    ratios = {
        f"{one}/{other}": round(middle[one] / middle[other], 3)
        for one, other in pairs
        if one in middle and other in middle
    }
    if {"saving", "trainer", "step"} <= middle.keys():
        save = max(0.0, middle["saving"] - middle["trainer"]) * case["num_steps"]
        every = middle["trainer"] + save / _SAVE_STEPS
        stopped = statistics.median(each["stopped"] for each in results["saving"])
        ratios |= {
            "a save in steps": round(save / middle["step"], 2),
            "training stands still for, in steps": round(stopped / middle["step"], 2),
            f"trainer/step, a save every {_SAVE_STEPS} steps": round(every / middle["step"], 3),
        }
    for name, ratio in ratios.items():
        print(f"{name:42} {ratio:6.3f}")
    show_json({**case, "cores": len(cores()), "seconds": seconds, **ratios})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
