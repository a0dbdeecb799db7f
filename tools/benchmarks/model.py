"""Compares our model's training step or inference with KerasHub's and PyTorch's in one run.

Contenders take turns, each in a process of its own, so that a slow minute of the machine does not
hit one of them alone. All sequences are full: no contender gains by skipping padding. The ceiling
is the matrix products alone. Peak memory is the process's.

train: a pre-training step with forward and backward pass, clipping and AdamW; the encoder with the
masked-LM head (ours computes the next-sentence head, too).
inference: the encoder alone; ours_fast is the fused inference graph, torch_compiled is PyTorch's
Inductor with constant weights (it needs a C++ compiler).

Example:
  python -m tools.benchmarks.model --task=train --size=base --batch_size=16 --rounds=2
"""

import dataclasses
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_TASK = FLAGS.choice("task", "train", ("train", "inference"), "What to measure.")
_SIZE = FLAGS.string("size", "base", "The model: tiny, mini, small, medium, base or large.")
_BATCH_SIZE = FLAGS.integer("batch_size", 16, "Sequences a step.", lower_bound=1)
_LENGTH = FLAGS.integer("max_seq_length", 128, "Tokens a sequence.", lower_bound=8)
_PRECISION = FLAGS.choice("precision", "bfloat16", ("bfloat16", "float32"), "What to compute in.")
_STEPS = FLAGS.integer("steps", 4, "Timed steps a round, after two untimed ones.", lower_bound=1)
_ROUNDS = FLAGS.integer("rounds", 2, "How often the contenders take turns.", lower_bound=1)
_CONTENDERS = FLAGS.words(
    "contenders",
    ["ours_fast", "ours_plain", "keras_hub", "torch"],
    "The contenders beside the ceiling; torch_compiled, ours_recompute (train), ours_jax and "
    "keras_hub_jax (train) can take part as well.",
)
_CHILD = FLAGS.string("child", None, "Measures one of them here (used by the tool itself).")

_WARM_UP = 2
_ON_JAX = ("ours_jax", "keras_hub_jax")


def measure(task: str, contender: str, workload: dict[str, Any]) -> dict[str, Any]:
    """Measures a contender in this process: seconds of each timed step, and its peak memory."""
    from tools.benchmarks.contenders import CONTENDERS
    from tools.benchmarks.workload import Workload

    settings = Workload(**workload)
    step = CONTENDERS[task][contender](settings)
    for _ in range(_WARM_UP):
        step()
    seconds, processor = [], []
    for _ in range(settings.steps):
        start, busy = time.perf_counter(), time.process_time()
        step()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "processor_seconds": processor, "peak_bytes": [peak]}


def _measure_in_child(task: str, contender: str, workload: dict[str, Any]) -> dict[str, list]:
    """Measures a contender in a new process; nothing where that fails, and stderr says why."""
    backend = "jax" if contender in _ON_JAX else "tensorflow"
    case = {"task": task, "contender": contender, "workload": workload}
    result = subprocess.run(
        [sys.executable, "-m", "tools.benchmarks.model", f"--child={json.dumps(case)}"],
        env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.stderr.write(f"{contender} failed:\n{result.stderr[-2000:]}\n")
        return {}
    return json.loads(result.stdout.splitlines()[-1])


def _compare(task: str, contenders: Sequence[str], workload: Any, rounds: int) -> None:
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in ("ceiling", *contenders)}
    fields = dataclasses.asdict(workload)
    for _ in range(rounds):
        for name, lists in figures.items():
            for key, values in _measure_in_child(task, name, fields).items():
                lists.setdefault(key, []).extend(values)
    figures = {name: lists for name, lists in figures.items() if lists}
    print(f"# {_machine()}; {json.dumps(fields)}, {rounds} rounds")
    _print_table(figures, workload.batch_size, workload.flops(training=task == "train"))
    for name, lists in figures.items():
        line = {"task": task, "contender": name, **lists, **fields, "commit": _commit()}
        print(json.dumps(line))


def _print_table(figures: dict[str, Any], batch_size: int, flops: float) -> None:
    """Prints a line a contender, with the median step over all rounds."""
    best = statistics.median(figures["ceiling"]["seconds"]) if "ceiling" in figures else None
    print(
        f"{'contender':14} {'seq/s':>7} {'s/step':>7} {'spread':>7} {'GFLOP/s':>8} "
        f"{'of ceiling':>10} {'peak GB':>8}"
    )
    for name, lists in figures.items():
        median = statistics.median(lists["seconds"])
        spread = (max(lists["seconds"]) - min(lists["seconds"])) / median
        share = f"{best / median:10.0%}" if best else f"{'':10}"
        peak = max(lists["peak_bytes"]) / 1e9
        print(
            f"{name:14} {batch_size / median:7.2f} {median:7.3f} {spread:7.0%} "
            f"{flops / median / 1e9:8.0f} {share} {peak:8.2f}"
        )


def _machine() -> str:
    model = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        names = [row for row in cpu.read_text().splitlines() if row.startswith("model name")]
        model = f"{len(names)} x {names[0].split(':')[1].strip()}" if names else model
    return f"{model}, Python {platform.python_version()}"


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def _run() -> None:
    if child := _CHILD.value:
        print(json.dumps(measure(**json.loads(child))))
        return
    from tools.benchmarks.workload import Workload

    workload = Workload(
        size=_SIZE.value,
        batch_size=_BATCH_SIZE.value,
        length=_LENGTH.value,
        precision=_PRECISION.value,
        steps=_STEPS.value,
    )
    _compare(_TASK.value, _CONTENDERS.value, workload, _ROUNDS.value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
