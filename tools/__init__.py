"""Command-line tools: flags → a config dataclass → one call; `from tools import NAME` gives one."""

from typing import Any


def __getattr__(name: str) -> Any:
    from tools.table import tool_named, tool_names

    if name.startswith("_") or name not in tool_names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tool_named(name)
