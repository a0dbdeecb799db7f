"""A table to read and a JSON line a contender."""

import json
import platform
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.benchmarks.settings import Settings
from tools.benchmarks.worker import run_worker


def compare(task: str, contenders: Sequence[str], settings: Settings, rounds: int) -> None:
    """Runs every contender in turn, `rounds` times over, and prints what came out.

    Taking turns keeps a slow minute of the machine from hitting one contender alone. A contender's
    figure is its median step over all rounds.
    """
    figures: dict[str, dict[str, list[float]]] = {
        name: {"seconds": [], "processor_seconds": [], "peak_bytes": []}
        for name in ("ceiling", *contenders)
    }
    for _ in range(rounds):
        for name, lists in figures.items():
            result = run_worker(task, name, settings)
            for key, values in lists.items():
                value = result.get(key, [])
                values.extend(value if isinstance(value, list) else [value])
    figures = {name: lists for name, lists in figures.items() if lists["seconds"]}
    print(f"# {_machine()}; {json.dumps(settings.as_dict())}, {rounds} rounds")
    _print_table(task, figures, settings)


def _print_table(task: str, figures: dict[str, Any], settings: Settings) -> None:
    products = settings.products(training=task == "train") / 1e9
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
            f"{name:14} {settings.batch_size / median:7.2f} {median:7.3f} {spread:7.0%} "
            f"{products / median:8.0f} {share} {peak:8.2f}"
        )
    for name, lists in figures.items():
        line = {"task": task, "contender": name, **lists, **settings.as_dict(), "commit": _commit()}
        print(json.dumps(line))


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
