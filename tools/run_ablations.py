"""Makes the tables of the BERT paper's ablations in small: 5, 6 and 8 and the figure of steps.

A recipe names the text, the sizes, the tasks and the seeds. Every run is a command of its own that
stands in the report with its seeds and its time; what tables share is run once. The same command
again leaves finished runs alone and goes on with the one that was stopped or killed. First of all
BERT is compared with random weights: a task on which it is no better shows nothing. The output
folder gets ablations.md (the tables), ablations.json, steps.png and, in cells/, what each run left.

Examples:
  keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
      --output_dir=ablations --dry_run
  keras-bert run_ablations --recipe=tools/recipes/ablations_small.cfg --data_dir=data
      --output_dir=ablations
"""

import sys
from collections.abc import Sequence

from tools.table import made

FLAGS, _run = made(__name__, ends=False)
FLAGS.define(
    "recipe",
    str,
    None,
    "A file of these flags, one a line; flags of the command line override it.",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return _run(with_recipe(words))


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
