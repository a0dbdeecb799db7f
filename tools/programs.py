"""The other tools, for a tool that runs them: their flags, and processes of their own."""

import contextlib
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.special_files import without_following


class ToolPrograms:
    """The other tools: their flags, and runs of them in processes of their own."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """The config of a tool's job."""
        flag_set = _module(tool).FLAGS
        flag_set.parse(list(flags))
        return flag_set.config()

    def run(
        self, tool: str, flags: Sequence[str], log: Path, cores: frozenset[int] | None = None
    ) -> int:
        """Runs a tool; its process ends with this one, also where this one is killed."""
        from pipelines.many_runs.runs import in_own_process

        words, remedy = list(flags), "the same command continues"
        return in_own_process(run_tool, tool, words, log, cores, remedy=remedy)


def run_tool(
    tool: str, flags: Sequence[str], log: Path, cores: frozenset[int] | None = None
) -> int:
    """Runs a tool in this process, which is its own; all that it prints goes to a file."""
    if cores:
        os.sched_setaffinity(0, cores)  # before TensorFlow counts them
    with open(log, "a", encoding="utf-8", opener=without_following) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            return int(_module(tool).main(list(flags)))


def _module(tool: str) -> Any:
    return importlib.import_module(f"{__package__}.{tool}")
