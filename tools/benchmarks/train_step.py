"""Compares our training step with KerasHub's and Hugging Face PyTorch's in one run.

A step is forward, backward, clip and AdamW of pre-training: the encoder with the masked-LM head
(ours computes the next-sentence head as well). Contenders take turns, each in a process of its own;
the ceiling is the step's matrix products alone. Peak memory is the process's.

Example:
  python -m tools.benchmarks.train_step --size=base --batch_size=16 --rounds=2
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.benchmarks.workload_flags import WorkloadFlags

FLAGS = command_line.FlagSet(__doc__)
_WORKLOAD = WorkloadFlags(
    FLAGS,
    ["ours_fast", "ours_plain", "keras_hub", "torch"],
    ["ours_recompute", "torch_compiled", "ours_jax", "keras_hub_jax"],
)


def _run() -> None:
    _WORKLOAD.compare("train")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
