"""The other tools, for a tool that runs some of them, one after the other in its process."""

import contextlib
import importlib
import sys
from collections.abc import Sequence
from typing import Any


class ToolPrograms:
    """The other tools: their configs, and runs of them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """The config of a tool's job."""
        flag_set = _module(tool).FLAGS
        flag_set.parse(list(flags))
        return flag_set.config()

    def run(self, tool: str, flags: Sequence[str]) -> int:
        """Runs a tool; what it prints goes to standard error, beside what it logs."""
        with contextlib.redirect_stdout(sys.stderr):
            return int(_module(tool).main(list(flags)))


def _module(tool: str) -> Any:
    return importlib.import_module(f"{__package__}.{tool}")
