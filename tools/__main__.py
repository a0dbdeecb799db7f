"""The command `keras-bert TOOL --flags`: the same as `python -m tools TOOL --flags`."""

import sys

from tools.command_line import run_to_an_end
from tools.table import GROUPS, tool_named, tool_names, tools_of


def help_text() -> str:
    """The tools in their groups, a line each."""
    width = max(map(len, tool_names()))
    lines = ["usage: keras-bert TOOL --flags   (keras-bert TOOL --help says more about one)"]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        lines += [f"  {name:{width}}  {tool.gives}" for name, tool in tools_of(group).items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the tool that the first word of the command line names."""
    return run_to_an_end(lambda _: _run(sys.argv[1:]))  # modules are imported, too


def _run(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_text())
        return 0 if words else 1
    if words[0] not in tool_names():
        from keras_bert_impl.errors import nearest, shown

        name = nearest(words[0], tool_names())
        mean = f"did you mean {name}?" if name else "keras-bert --help lists them."
        sys.stderr.write(f"Error: there is no tool {shown(words[0])}; {mean}\n")
        return 1
    return tool_named(words[0]).main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
