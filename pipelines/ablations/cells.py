"""Cells: the runs of a study. Each is a command of its own, in a folder of its own.

A cell's folder is called after what it does and, behind it, after a digest of all that its result
follows from: the flags, the files that they name, and the cells that it builds on. So a changed
recipe finds the cells again that it did not change, and never mixes them with others.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

TEXT, VOCABULARY, SHARDS = "text", "vocabulary", "shards"
PRETRAINING, FINE_TUNING = "pre-training", "fine-tuning"

_HEAD = 1 << 20  # bytes of a file that enter a digest, in addition to its size


@dataclass(frozen=True, eq=False)
class Cell:
    """One run.

    Attributes:
        name: says what it does; unique in a study.
        kind: what sort of run it is.
        tool: the command.
        flags: its flags; {out} stands for the cell's folder.
        root: the study's folder.
        needs: the cells whose results it reads.
        files: what is written into its folder before it starts, by name.
        seeds: of pre-training and of fine-tuning, as far as it has them.
    """

    name: str
    kind: str
    tool: str
    flags: tuple[str, ...]
    root: Path
    needs: tuple["Cell", ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()

    @cached_property
    def digest(self) -> str:
        """A short name for all that the result follows from."""
        return _digest(self)

    @cached_property
    def folder(self) -> Path:
        """Where the cell works."""
        return self.root / "cells" / f"{self.name}-{self.digest}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags with the cell's folder in them."""
        return tuple(flag.replace("{out}", str(self.folder)) for flag in self.flags)

    @property
    def command(self) -> str:
        """The command line that repeats the cell."""
        return shlex.join(["keras-bert", self.tool, *self.arguments])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.name)


def flag(name: str, value: object = None) -> str:
    """A flag of a command.

    Example:
        >>> len(flag("do_train")), flag("seed", 3)[2:]
        (10, 'seed=3')
    """
    return f"--{name}" if value is None else f"--{name}={value}"


def in_order(wanted: Sequence[Cell]) -> list[Cell]:
    """Cells and all that they need, each once, every one behind those that it needs.

    Raises:
        ValueError: two cells that differ have one name.

    Example:
        >>> text = Cell("text", TEXT, "split_sentences", (), Path("study"))
        >>> shards = Cell("shards", SHARDS, "create_pretraining_data", (), Path("study"), (text,))
        >>> [cell.name for cell in in_order([shards, text, shards])]
        ['text', 'shards']
    """
    found: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        if cell.name in found:
            if found[cell.name] != cell:
                raise ValueError(f"two different cells are called {cell.name}")
            return
        for needed in cell.needs:
            add(needed)
        found[cell.name] = cell

    for cell in wanted:
        add(cell)
    return list(found.values())


def _digest(cell: Cell) -> str:
    own = str(cell.root)
    values = {
        "tool": cell.tool,
        "flags": [flag.replace(own, "{study}") for flag in cell.flags],
        "read": [_content(flag.partition("=")[2], own) for flag in cell.flags],
        "needs": [needed.digest for needed in cell.needs],
        "files": dict(cell.files),
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def _content(value: str, own: str) -> list[list[object]]:
    """The sizes and the first bytes of the files that a flag's value names, but for our own."""
    found: list[list[object]] = []
    for part in value.split(","):
        path = Path(part)
        if not part or part.startswith((own, "{")) or not _exists(path):
            continue
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [_identity(file, path) for file in files if file.is_file()]
    return found


@lru_cache(maxsize=4096)
def _identity(file: Path, folder: Path) -> list[object]:
    with file.open("rb") as opened:
        head = hashlib.sha256(opened.read(_HEAD)).hexdigest()[:16]
    return [file.relative_to(folder).as_posix(), file.stat().st_size, head]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a value that is no path at all: too long, say
        return False
