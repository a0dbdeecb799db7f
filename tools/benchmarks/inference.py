"""Compares our encoder's inference with KerasHub's and Hugging Face PyTorch's in one run.

Contenders take turns, each in a process of its own; the ceiling is the matrix products alone.
All sequences are full, so that nobody gains by skipping padding. ours_fast is the frozen model;
torch_compiled, PyTorch's Inductor with frozen weights, needs a C++ compiler.

Example:
  python -m tools.benchmarks.inference --size=base --batch_size=16 --rounds=2
"""

import sys
from collections.abc import Sequence

from tools import command_line
from tools.benchmarks.workload_flags import WorkloadFlags

FLAGS = command_line.FlagSet(__doc__)
_WORKLOAD = WorkloadFlags(
    FLAGS,
    ["ours_fast", "ours_plain", "keras_hub", "torch", "torch_compiled"],
    ["ours_jax"],
)


def _run() -> None:
    _WORKLOAD.compare("inference")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
