"""Ways in which a file of ours may be damaged, and a list of JSON values nobody expects.

`damage` makes a damaged file in place of a sound one, `others` gives a JSON value with one entry
after the other missing or of another type. A new kind of file needs an entry in a list of readers
only.
"""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "\ud800",
    "\x1b[31m" + "x" * 500,
    "../../secret\0",
    "٣",
    [],
    [[{}]],
    {},
    {"a": "b"},
)

_DEEP = b"[" * 100_000


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x15]) + content[middle + 1 :]


_OTHER_BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _content: b"",
    "cut": _cut,
    "last byte gone": lambda content: content[:-1],
    "longer": lambda content: content + b"\x00more",
    "flipped": _flipped,
    "first byte flipped": lambda content: bytes([content[0] ^ 0x15]) + content[1:],
    "no UTF-8": lambda content: b"\xff\xfe" + content,
    "zeros": lambda content: bytes(len(content)),
    "nested": lambda _content: _DEEP,
    "a list": lambda _content: b"[]",
    "an object": lambda _content: b"{}",
    "a number": lambda _content: b"9" * 5000,
}

DAMAGES = (*_OTHER_BYTES, "a folder")


def damage(path: Path, how: str) -> None:
    """Puts something else in the place of a sound file.

    Args:
        path: the file.
        how: one of `DAMAGES`.
    """
    content = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
        (path / "inside").write_text("x")
    else:
        path.write_bytes(_OTHER_BYTES[how](content))


def others(value: Any) -> Iterator[Any]:
    """A JSON value with one entry after the other, at any depth, missing or of another type."""
    yield from HOSTILE
    if isinstance(value, dict | list):
        # The items of a list are alike.
        for name in list(value) if isinstance(value, dict) else range(min(len(value), 1)):
            for other in others(value[name]):
                changed = copy.copy(value)
                changed[name] = other
                yield changed
            fewer = copy.copy(value)
            del fewer[name]
            yield fewer
    if isinstance(value, dict):
        yield {**value, "unknown \x1b": 1}


def other_files(path: Path) -> Iterator[None]:
    """Writes one damaged JSON file after the other in the place of a sound one."""
    content = path.read_bytes()
    for values in others(json.loads(content)):
        path.write_text(json.dumps(values))
        yield
    for how in _OTHER_BYTES:
        path.write_bytes(content)
        damage(path, how)
        yield
    path.unlink()
    path.mkdir()
    yield
