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

FLAGS = command_line.FlagSet(__doc__)
_SIZE = FLAGS.string("size", "base", "The model: tiny, mini, small, medium, base or large.")
_BATCH_SIZE = FLAGS.integer("batch_size", 16, "Sequences a step.", lower_bound=1)
_LENGTH = FLAGS.integer("max_seq_length", 128, "Pieces a sequence.", lower_bound=8)
_PRECISION = FLAGS.choice("precision", "bfloat16", ("bfloat16", "float32"), "What to compute in.")
_STEPS = FLAGS.integer("steps", 4, "Timed steps a round, after two untimed ones.", lower_bound=1)
_ROUNDS = FLAGS.integer("rounds", 2, "How often the contenders take turns.", lower_bound=1)
_CONTENDERS = FLAGS.words(
    "contenders",
    ["ours_fast", "ours_plain", "keras_hub", "torch"],
    "Who takes part: ours_fast, ours_plain, keras_hub, torch; on JAX: ours_jax, keras_hub_jax.",
)


def _run() -> None:
    from tools.benchmarks.report import compare
    from tools.benchmarks.settings import Settings

    length = _LENGTH.value
    settings = Settings(
        size=_SIZE.value,
        batch_size=_BATCH_SIZE.value,
        length=length,
        predictions=max(1, round(length * 0.15)),
        precision=_PRECISION.value,
        steps=_STEPS.value,
    )
    compare("train", _CONTENDERS.value, settings, _ROUNDS.value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
