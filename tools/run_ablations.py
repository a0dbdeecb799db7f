"""Makes the tables of the BERT paper's ablations in small: 5, 6, 7 and 8 and the figure of steps.

A recipe names the text, the sizes, the tasks and the seeds. Every run is a command of its own that
stands in the report with its seeds and its time; what tables share is run once. The same command
again leaves finished runs alone and goes on with the one that was stopped or killed. First of all
BERT must beat random weights by three standard deviations on every task. The output folder gets
ablations.md (the tables), ablations.json, steps.png and, in cells/, what each run left.

Examples:
  keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
      --output_dir=ablations --dry_run
  keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
      --output_dir=ablations
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.ablations.config import RunAblationsConfig
from tools.config_flags import ConfigFlags

FLAGS = ConfigFlags(__doc__, RunAblationsConfig)
FLAGS.string(
    "recipe", None, "A file of these flags, one a line; those of the command line stand over it."
)


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
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            return int(_module(tool).main(list(flags)))


def _module(tool: str) -> Any:
    return importlib.import_module(f"{__package__}.{tool}")


def _run(config: RunAblationsConfig) -> None:
    from pipelines.ablations.job import run_ablations

    results = run_ablations(config, ToolPrograms())
    for line in results.lines:
        print(line)
    for path in results.files:
        print(f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return FLAGS.main_of(_run, continues=True)(with_recipe(words))


def with_recipe(words: Sequence[str]) -> list[str]:
    """Lets a recipe be read as a flag file, in front of all other flags.

    Example:
        >>> with_recipe(["--output_dir=out", "--recipe=small.cfg"])
        ['--flagfile=small.cfg', '--output_dir=out', '--recipe=small.cfg']
    """
    named, ends = list[str](), [*words[1:], ""]
    for word, following in zip(words, ends, strict=True):
        name, joined, value = word.partition("=")
        if name in ("--recipe", "-recipe"):
            named.append(value if joined else following)
    return [*(f"--flagfile={file}" for file in named), *words]


if __name__ == "__main__":
    sys.exit(main())
