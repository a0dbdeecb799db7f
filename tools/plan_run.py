"""Says what a pre-training run takes: parameters, memory, the largest batch, operations, hours.

Example:
  keras-bert plan_run --model_size=base --train_batch_size=256 --num_train_steps=1000000
      --device_memory_gb=80 --precision=bfloat16 --examples_per_second=480
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_bert_impl.config import MODEL_SIZES
from tools import command_line
from tools.training_flags import TrainingFlags

if TYPE_CHECKING:
    from pipelines.runs.plan_run import PlanRunResults

FLAGS = command_line.FlagSet(__doc__)
_BERT_CONFIG_FILE = FLAGS.string(
    "bert_config_file", None, "The model's configuration (google's JSON form)."
)
_MODEL_SIZE = FLAGS.choice(
    "model_size",
    None,
    MODEL_SIZES,
    "A published size, instead of a configuration file.",
)
_VOCAB_SIZE = FLAGS.integer(
    "vocab_size", 30522, "How many word pieces a model of --model_size has.", lower_bound=5
)
_MAX_SEQ_LENGTH = FLAGS.integer("max_seq_length", 128, "Word pieces of an example.", lower_bound=5)
_MAX_PREDICTIONS = FLAGS.integer(
    "max_predictions_per_seq", 20, "Masked places of an example.", lower_bound=1
)
_NUM_TRAIN_STEPS = FLAGS.integer(
    "num_train_steps", 1000000, "Optimizer steps of the run.", lower_bound=1
)
_REPLICAS = FLAGS.integer(
    "num_replicas", 1, "Over how many devices, of all machines, a batch is split.", lower_bound=1
)
_DEVICE_MEMORY_GB = FLAGS.number(
    "device_memory_gb",
    None,
    "Memory of one device in 10^9 bytes; the largest batch that fits is then said.",
    lower_bound=0.0,
)
_ON_CPU = FLAGS.switch("on_cpu", False, "The device is a CPU: checkpoints share its memory.")
_EXAMPLES_PER_SECOND = FLAGS.number(
    "examples_per_second", None, "The rate of the whole run, to say the hours.", lower_bound=0.0
)
_MEASURE_STEPS = FLAGS.integer(
    "measure_steps", 0, "Time so many steps on this machine to get the rate.", lower_bound=0
)
_TRAINING = TrainingFlags(FLAGS, batch_size=256, learning_rate=1e-4)


def _run() -> None:
    from pipelines.runs.plan_run import PlanRunConfig, plan

    results = plan(
        PlanRunConfig(
            bert_config_file=_BERT_CONFIG_FILE.value,
            model_size=_MODEL_SIZE.value,
            vocab_size=_VOCAB_SIZE.value,
            max_seq_length=_MAX_SEQ_LENGTH.value,
            max_predictions_per_seq=_MAX_PREDICTIONS.value,
            training=_TRAINING.config(_NUM_TRAIN_STEPS.value, 0),
            replicas=_REPLICAS.value,
            device_memory_gb=_DEVICE_MEMORY_GB.value,
            on_cpu=_ON_CPU.value,
            examples_per_second=_EXAMPLES_PER_SECOND.value,
            measure_steps=_MEASURE_STEPS.value,
        )
    )
    _show(results)


def _show(results: "PlanRunResults") -> None:
    plan = results.plan
    print(f"{'parameters':24} {plan.parameters:>15,}")
    for name, count in results.parts.items():
        print(f"  {name:22} {count:>15,}")
    print(f"{'memory of a device':24} {sum(plan.memory.values()) / 1e9:>12.2f} GB")
    for name, size in plan.memory.items():
        print(f"  {name:22} {size / 1e9:>12.2f} GB")
    if plan.largest_batch is not None:
        print(f"{'largest batch that fits':24} {plan.largest_batch:>15,}")
    print(f"{'examples':24} {plan.examples:>15,}")
    print(f"{'tokens':24} {plan.tokens:>15,}")
    print(f"{'operations':24} {plan.flops:>15.3g}")
    if results.examples_per_second and plan.hours is not None:
        print(f"{'examples a second':24} {results.examples_per_second:>15.1f}")
        print(f"{'operations a second':24} {plan.flops / plan.hours / 3600:>15.3g}")
        print(f"{'hours':24} {plan.hours:>15.1f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
