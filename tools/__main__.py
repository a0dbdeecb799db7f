"""The command `keras-bert TOOL --flags`: the same as `python -m tools.TOOL --flags`."""

import importlib
import sys
from pathlib import Path

from tools.endings import end_quietly, run_to_an_end

# Of tools.
_PARTS = {"command_line", "config_flags", "endings", "fine_tuning", "list_flags", "programs"}


def tool_names() -> list[str]:
    """The tools there are: every module of this package that is a program.

    Example:
        >>> "split_sentences" in tool_names()
        True
    """
    return sorted({file.stem for file in Path(__file__).parent.glob("[!_]*.py")} - _PARTS)


def main() -> int:
    """Runs the tool that the first word of the command line names."""
    end_quietly()
    return run_to_an_end(lambda _: _run(sys.argv[1:]))  # modules are imported, too


def _run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write("usage: keras-bert TOOL --flags   (keras-bert TOOL --help)\n\nTools:\n")
        sys.stdout.write("".join(f"  {name}\n" for name in tool_names()))
        return 0 if words else 1
    if words[0] not in tool_names():
        from tools.command_line import nearest

        name = nearest(words[0], tool_names())
        mean = f"did you mean {name}?" if name else "keras-bert --help lists them."
        sys.stderr.write(f"Error: there is no tool '{words[0]}'; {mean}\n")
        return 1
    return importlib.import_module(f"{__package__}.{words[0]}").main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
