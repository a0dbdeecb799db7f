"""The flags of the benchmarks that compare models with their peers."""

from collections.abc import Sequence

from tools.command_line import FlagSet


class WorkloadFlags:
    """Adds the flags that describe a workload and who takes part.

    Args:
        flag_set: the benchmark's flags.
        contenders: who takes part by default.
        others: who else may.
    """

    def __init__(self, flag_set: FlagSet, contenders: Sequence[str], others: Sequence[str]) -> None:
        self._size = flag_set.string(
            "size", "base", "The model: tiny, mini, small, medium, base or large."
        )
        self._batch_size = flag_set.integer("batch_size", 16, "Sequences a step.", lower_bound=1)
        self._length = flag_set.integer("max_seq_length", 128, "Pieces a sequence.", lower_bound=8)
        self._precision = flag_set.choice(
            "precision", "bfloat16", ("bfloat16", "float32"), "What to compute in."
        )
        self._steps = flag_set.integer(
            "steps", 4, "Timed steps a round, after two untimed ones.", lower_bound=1
        )
        self._rounds = flag_set.integer(
            "rounds", 2, "How often the contenders take turns.", lower_bound=1
        )
        self._contenders = flag_set.words(
            "contenders",
            contenders,
            f"Who takes part; {', '.join(others)} can as well, each on its own backend.",
        )

    def compare(self, task: str) -> None:
        """Runs the comparison that the flags describe and prints it.

        Args:
            task: "train" or "inference".
        """
        from tools.benchmarks.report import compare
        from tools.benchmarks.settings import Settings

        length = self._length.value
        settings = Settings(
            size=self._size.value,
            batch_size=self._batch_size.value,
            length=length,
            predictions=max(1, round(length * 0.15)),
            precision=self._precision.value,
            steps=self._steps.value,
        )
        compare(task, self._contenders.value, settings, self._rounds.value)
