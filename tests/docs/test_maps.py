"""The README of a room is its map: what it names is there, and every file is on it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAPS = [
    page
    for house in ("keras_bert_impl", "pipelines", "tests/fuzz")
    for page in sorted((ROOT / house).rglob("README.md"))
]
ROOMS = pytest.mark.parametrize(
    "room", [page.parent for page in MAPS], ids=lambda room: room.relative_to(ROOT).as_posix()
)


def named(room):
    """The files and folders in the first cells of the map's tables."""
    page = (room / "README.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", cell)}


def test_there_are_maps():
    assert len(MAPS) > 8


@ROOMS
def test_what_a_map_names_is_there(room):
    for name in named(room):
        assert any(room.rglob(name)) or (ROOT / name).exists(), f"the map names {name}"


@ROOMS
def test_every_file_is_on_the_map(room):
    page = (room / "README.md").read_text(encoding="utf-8")
    for path in (path.relative_to(room) for path in room.rglob("*.py")):
        if path.stem in ("__init__", "__main__") or path.stem.startswith("test_"):
            continue
        names = (path.as_posix(), path.name)
        assert any(f"`{name}`" in page for name in names), f"{path} is missing"
