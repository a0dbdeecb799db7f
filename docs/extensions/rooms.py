"""The drawing of the rooms: an SVG made of the table in BUILD.md, which a test holds to the code.

`python -m docs.extensions.rooms` writes it anew.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DRAWING = ROOT / "docs" / "_static" / "rooms.svg"

_HOUSES = ("tools", "pipelines", "keras_bert_impl")  # imports point from left to right
_NO_HOUSES = ("tests", "docs")
_ROW = re.compile(r"^\| `(?:[├└] )?(\w+)/`(?:, `(\w+)/`)? \| ([^|]*) \|", re.MULTILINE)
_WIDTH, _GAP, _LINE = 300, 70, 30
_HEAD, _PADDING, _LETTERS = 56, 14, 46


class Room(NamedTuple):
    """A folder of the architecture, and what it holds in a few words."""

    name: str
    holds: str


def rooms_of(page: str) -> dict[str, list[Room]]:
    r"""The houses and their rooms, as the table of BUILD.md lists them.

    Example:
        >>> rooms_of("| `tools/` | binaries | |\n| `└ recipes/` | flag files of runs | |\n")
        {'tools': [Room(name='recipes', holds='flag files of runs')]}
    """
    houses: dict[str, list[Room]] = {}
    rooms: list[Room] = []
    for first, second, holds in _ROW.findall(page):
        if first in (*_HOUSES, *_NO_HOUSES):
            rooms = houses.setdefault(first, [])
        else:
            rooms += [Room(name, _in_short(holds)) for name in (first, second) if name]
    return {house: rooms for house, rooms in houses.items() if house in _HOUSES}


def _in_short(holds: str) -> str:
    """The first phrase, as far as it fits into a line of a box."""
    phrase = re.split(r"[:;(]", holds.replace("`", ""))[0].strip()
    return phrase if len(phrase) <= _LETTERS else phrase[: phrase.rindex(" ", 0, _LETTERS)] + " …"


def drawing(page: str) -> str:
    """The SVG: a column for each house, a box for each room, arrows for imports."""
    houses = rooms_of(page)
    height = max(len(houses[house]) for house in _HOUSES) * (_LINE + 14) + _HEAD + 2 * _PADDING
    width = len(_HOUSES) * _WIDTH + (len(_HOUSES) - 1) * _GAP
    parts = [_column(house, houses[house], n, height) for n, house in enumerate(_HOUSES)]
    parts += [_arrow(n) for n in range(len(_HOUSES) - 1)]
    return "\n".join([_START.format(width=width, height=height), *parts, "</svg>", ""])


_START = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
font-family="sans-serif">
<title>The rooms of the code: tools import pipelines, and both import keras_bert_impl</title>
<rect width="{width}" height="{height}" fill="#ffffff"/>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0 0 10 5 0 10z" fill="#44546a"/></marker></defs>"""


def _column(house: str, rooms: list[Room], number: int, height: int) -> str:
    left = number * (_WIDTH + _GAP)
    lines = [
        f'<rect x="{left}" y="0" width="{_WIDTH}" height="{height}" rx="8" fill="#eef3fa"/>',
        f'<text x="{left + _PADDING}" y="34" font-size="19" font-weight="bold" fill="#1f2d3d">'
        f"{house}/</text>",
    ]
    for row, room in enumerate(rooms):
        top = _HEAD + row * (_LINE + 14)
        lines += [
            f'<rect x="{left + _PADDING}" y="{top}" width="{_WIDTH - 2 * _PADDING}" '
            f'height="{_LINE + 8}" rx="5" fill="#ffffff" stroke="#b8c7dc"/>',
            f'<text x="{left + 2 * _PADDING}" y="{top + 16}" font-size="13" fill="#1f2d3d">'
            f"{room.name}/</text>",
            f'<text x="{left + 2 * _PADDING}" y="{top + 31}" font-size="11" fill="#44546a">'
            f"{escape(room.holds)}</text>",
        ]
    return "\n".join(lines)


def _arrow(number: int) -> str:
    start = number * (_WIDTH + _GAP) + _WIDTH + 6
    return (
        f'<line x1="{start}" y1="28" x2="{start + _GAP - 12}" y2="28" stroke="#44546a" '
        f'stroke-width="2" marker-end="url(#head)"/>\n'
        f'<text x="{start + _GAP // 2 - 6}" y="18" font-size="11" text-anchor="middle" '
        f'fill="#44546a">imports</text>'
    )


if __name__ == "__main__":
    page = (ROOT / "BUILD.md").read_text(encoding="utf-8")
    DRAWING.write_text(drawing(page), encoding="utf-8")
