"""Compares plan_run's memory estimate with measured training runs on this machine.

Each case trains four steps in a process of its own, saving after each; measured is the
process's peak resident memory.

Example:
  python -m tools.benchmarks.memory --cases=mini,32,128,float32:base,8,128,bfloat16
"""

import itertools
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_CASES = FLAGS.string(
    "cases",
    "tiny,64,128,float32:mini,32,128,float32:mini,8,512,float32:small,16,128,float32:"
    "medium,16,128,float32:medium,16,128,bfloat16:base,8,128,float32:base,8,128,bfloat16",
    "What to measure, several divided by colons: size,batch,length,precision and perhaps "
    "recompute, lamb, micro=N (so many micro-batches) or mirrored (over two logical CPUs).",
)
_VOCAB_SIZE = FLAGS.integer("vocab_size", 30522, "Tokens in the models' vocabulary.")
_CHILD = FLAGS.string("child", None, "Measures one case in this process (used by the tool itself).")

_STEPS, _PREDICTIONS = 4, 20


class _SameBatch:
    """One batch for every step."""

    num_workers = 1

    def __init__(self, batch: dict[str, Any], batch_size: int) -> None:
        self._batch, self.batch_size = batch, batch_size

    def batches_from(self, step: int) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        return itertools.repeat(self._batch)

    def where(self, step: int) -> str:
        return f"made-up examples of step {step}"


def measure(case: str, vocab_size: int) -> dict[str, Any]:
    """Trains a few steps of a case in this process; gives its peak and the estimate, in bytes."""
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.planning import machine_bytes, made_up_examples, training_memory
    from keras_bert_impl.training.config import TrainingConfig, dtype_policy
    from keras_bert_impl.training.loop import train
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.phases import one_phase
    from keras_bert_impl.training.run_directory import RunDirectory
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.strategy import make_devices

    size, batch, length, precision, *rest = case.split(",")
    config = named_config(size, vocab_size)
    mirrored = "mirrored" in rest
    training = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=_STEPS,
        num_warmup_steps=1,
        train_batch_size=int(batch),
        precision=precision,
        recompute="recompute" in rest,
        optimizer="lamb" if "lamb" in rest else "adamw",
        accumulation_steps=next((int(w[6:]) for w in rest if w.startswith("micro=")), 1),
        distribution_strategy="mirrored" if mirrored else "one_device",
        num_logical_devices=2 if mirrored else 1,
        save_checkpoints_steps=1,  # so that steps run beside the copy that is written
    )
    devices = make_devices(training)
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        model = BertPretrainer(config, dtype=dtype_policy(precision))
    model.encoder.recompute = training.recompute
    examples = made_up_examples(int(batch), int(length), _PREDICTIONS, vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        train(
            TrainingState(model, training, devices),
            PretrainingObjective(),
            one_phase(_SameBatch(examples, int(batch)), training),
            training,
            RunDirectory.open(folder),
        )
    replicas = devices.replicas
    parts = training_memory(config, training, int(length), _PREDICTIONS, True, replicas)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    estimate = machine_bytes(parts, replicas)
    return {"case": case, "measured": peak, "estimate": estimate, "parts": parts}


def _run() -> None:
    cases, vocab_size, child = _CASES.value, _VOCAB_SIZE.value, _CHILD.value
    if child:
        print(json.dumps(measure(child, vocab_size)))
        return
    print(f"{'case':32} {'measured':>9} {'estimate':>9} {'ratio':>6}")
    for case in cases.split(":"):
        command = [sys.executable, "-m", "tools.benchmarks.memory", f"--child={case}"]
        command.append(f"--vocab_size={vocab_size}")
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        line = json.loads(result.stdout.splitlines()[-1])
        measured, estimate = line["measured"] / 1e9, line["estimate"] / 1e9
        print(f"{case:32} {measured:6.2f} GB {estimate:6.2f} GB {estimate / measured:6.2f}")
        print(json.dumps(line), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
