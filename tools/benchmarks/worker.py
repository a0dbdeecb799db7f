"""One contender in a process of its own: `worker CONTENDER SETTINGS`, both printed by a benchmark.

Gives one JSON line: seconds of each timed step, seconds of the processors, peak memory.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tools.benchmarks.settings import Settings

ON_JAX = {"ours_jax": "ours", "keras_hub_jax": "keras_hub"}
_WARM_UP = 2


def make(task: str, contender: str, settings: Settings) -> Callable[[], Any]:
    """What a contender does once a step."""
    from tools.benchmarks import ceiling, our_model, peers

    makers: dict[tuple[str, str], Callable[[], Callable[[], Any]]] = {
        ("train", "ours_fast"): lambda: our_model.training_step(settings, "fast"),
        ("train", "ours_plain"): lambda: our_model.training_step(settings, "plain"),
        ("train", "ours_recompute"): lambda: our_model.training_step(settings, "fast", True),
        ("train", "ours_jax"): lambda: our_model.jax_training_step(settings),
        ("train", "keras_hub"): lambda: peers.keras_hub_training_step(settings),
        ("train", "keras_hub_jax"): lambda: peers.keras_hub_training_step(settings),
        ("train", "torch"): lambda: peers.torch_training_step(settings),
        ("train", "torch_compiled"): lambda: peers.torch_training_step(settings, compiled=True),
        ("inference", "ours_fast"): lambda: our_model.inference(settings, "frozen"),
        ("inference", "ours_plain"): lambda: our_model.inference(settings, "plain"),
        ("inference", "ours_jax"): lambda: our_model.inference(settings, "plain"),
        ("inference", "keras_hub"): lambda: peers.keras_hub_inference(settings),
        ("inference", "torch"): lambda: peers.torch_inference(settings),
        ("inference", "torch_compiled"): lambda: peers.torch_inference(settings, compiled=True),
    }
    if contender == "ceiling":
        return ceiling.products(settings, training=task == "train")
    return makers[task, contender]()


def run_worker(task: str, contender: str, settings: Settings) -> dict[str, Any]:
    """Runs a contender in a new process and reads its figures."""
    environment = dict(os.environ)
    environment["KERAS_BACKEND"] = "jax" if contender in ON_JAX else "tensorflow"
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    command = [sys.executable, "-m", "tools.benchmarks.worker", task, contender]
    command.append(json.dumps(settings.as_dict()))
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.stderr.write(f"{contender} failed:\n{result.stderr[-2000:]}\n")
        return {}
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    """Measures the contender that the command line names."""
    task, contender, text = sys.argv[1:]
    settings = Settings(**json.loads(text))
    step = make(task, contender, settings)
    for _ in range(_WARM_UP):
        step()
    seconds, processor = [], []
    for _ in range(settings.steps):
        start, busy = time.perf_counter(), time.process_time()
        step()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "processor_seconds": processor, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
