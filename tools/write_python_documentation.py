"""Writes a small real corpus that needs no download: the documentation that Python itself ships.

Example:
  keras-bert write_python_documentation --output_file=train.jsonl --held_out_file=held_out.jsonl
"""

import sys
from collections.abc import Sequence

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_OUTPUT_FILE = FLAGS.string(
    "output_file",
    None,
    "Where to write the documents: JSON lines with `title` and `text`.",
    required=True,
)
_HELD_OUT_FILE = FLAGS.string(
    "held_out_file",
    None,
    "Where to write every 16th document instead, for evaluation.",
    required=True,
)


def _run() -> None:
    from pipelines.corpora.python_documentation import write_python_documentation

    size = write_python_documentation(_OUTPUT_FILE.value, _HELD_OUT_FILE.value)
    print(f"{size / 1e6:.2f} MB of text")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
