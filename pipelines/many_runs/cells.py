"""Cells: runs that are commands of tools, each in a folder of its own.

A cell makes text, a vocabulary, shards, a model or a score. The folder is called after what the
cell does and, behind it, after a digest of all that its result follows from: the flags, the files
that they name, and the cells that it builds on. So changed flags find the cells again that they do
not concern, and never mix them with others.
"""

import hashlib
import json
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import not_written, open_input, open_whole
from keras_bert_impl.interrupts import EXIT_SIGNAL
from keras_bert_impl.json_files import Count
from keras_bert_impl.options import bounded, options_of
from keras_bert_impl.special_files import without_following
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.many_runs.runs import FIGURES, Cores, Run, Values
from pipelines.records.paths import match_files

TEXT, VOCABULARY, SHARDS = "text", "vocabulary", "shards"
PRETRAINING, FINE_TUNING = "pre-training", "fine-tuning"

FINE_TUNING_TOOLS = ("run_classifier", "run_ner", "run_squad", "run_swag")

_CALLS, _LOG = "calls.txt", "log.txt"

ConfigOf = Callable[[str, Sequence[str]], Any]
"""Gives the config of a tool's job for some flags."""


class Programs(Protocol):
    """The tools, as a job uses them that runs some of them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """Gives the config of a tool's job, without starting it.

        Raises:
            UserError: the tool refuses its flags.
        """
        ...

    def run(self, tool: str, flags: Sequence[str], log: Path, cores: Cores) -> int:
        """Runs a tool to its end; gives its exit code.

        Args:
            tool: its name.
            flags: its flags.
            log: the file that gets what it prints.
            cores: the processors that it may use; None: those of this process.
        """
        ...


@dataclass(frozen=True, eq=False)
class Cell:
    """One run.

    Attributes:
        name: says what it does; unique in a job.
        kind: what sort of run it is.
        tool: the command.
        flags: its flags; {out} stands for the cell's folder.
        root: the job's folder.
        needs: the cells whose results it reads.
        files: what is written into its folder before it starts, by name.
        seeds: of pre-training and of fine-tuning, as far as it has them.
        free: further flags, from which nothing of the result follows.
    """

    name: str
    kind: str
    tool: str
    flags: tuple[str, ...]
    root: Path
    needs: tuple["Cell", ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    free: tuple[str, ...] = ()

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
        flags = (*self.flags, *self.free)
        return tuple(flag.replace("{out}", str(self.folder)) for flag in flags)

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


@dataclass(frozen=True)
class Result:
    """Result of a cell.

    Attributes:
        figures: those of its `eval_results.txt`; none of data.
        seconds: that its calls took, but for calls that were killed.
        calls: how often it was started; above 1 it was stopped or killed in between.
    """

    figures: dict[str, float]
    seconds: float
    calls: int

    @classmethod
    def of(cls, values: Values) -> "Result":
        """The result in the file of a finished cell."""
        return cls(**{one.name: values[one.name] for one in fields(cls)})

    @classmethod
    def kept(cls, run: Run) -> "Result | None":
        """The result of a cell's run; None of one that is not finished."""
        values = run.kept(figures=FIGURES, seconds=bounded(float, at_least=0), calls=Count)
        return None if values is None else cls.of(values)


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
    """The sizes and the content of the files that a flag's value names, but for our own."""
    found: list[list[object]] = []
    parts = [one for one in value.split(",") if one and not one.startswith((f"{own}/", "{"))]
    for path in (path for part in parts for path in _named(part)):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [_identity(file, path) for file in files if file.is_file()]
    return found


def _identity(file: Path, folder: Path) -> list[object]:
    status = file.stat()
    content = _sha256(file, status.st_size, status.st_mtime_ns)[:16]
    return [file.relative_to(folder).as_posix(), status.st_size, content]


@lru_cache(maxsize=4096)
def _sha256(file: Path, _size: int, _time: int) -> str:
    with open_input(file, may_be_empty=True) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()  # type: ignore[arg-type]


def _named(value: str) -> list[Path]:
    try:
        return [path for path in map(Path, match_files(value)) if path.exists()]
    except (OSError, UserError):  # a value that is no path at all: too long, say
        return []


def each_over_the_last(config_class: type, *groups: Sequence[str]) -> list[str]:
    """Flags of which those of a later group stand over an earlier one's.

    A tool does that by itself but for lists, to which a flag that is given again would add.

    Args:
        config_class: of the tool's job.
        *groups: flags as `flag` gives them.
    """
    lists = {one.name for one in options_of(config_class) if one.element is not None}
    kept = list[str]()
    for group in groups:
        named = lists & {_name_of(one) for one in group}
        kept = [*(one for one in kept if _name_of(one) not in named), *group]
    return kept


def _name_of(words: str) -> str:
    return words.lstrip("-").partition("=")[0]


def run_of(cell: Cell, programs: Programs, keep_models: bool) -> Run:
    """The run of a cell; its folder's name says what its result follows from.

    Args:
        cell: what runs.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
    """
    return Run(
        cell.name,
        cell.folder,
        partial(_work, cell, programs),
        needs=frozenset(one.name for one in cell.needs),
        tidy=partial(_tidy, cell, keep_models),
    )


def _work(cell: Cell, programs: Programs, cores: Cores) -> Values | None:
    """Runs a cell's command; gives what its result file says, None where it was stopped.

    Raises:
        UserError: the tool failed.
    """
    for name, text in cell.files.items():
        with open_whole(cell.folder / name) as file:
            file.write(text)
    start = time.monotonic()
    _note(cell, "started")
    code = programs.run(cell.tool, cell.arguments, cell.folder / _LOG, cores)
    _note(cell, f"ended {time.monotonic() - start:.1f}")
    if code > EXIT_SIGNAL:
        return None
    if code != 0:
        raise UserError(
            f"{cell.folder / _LOG}: the run {cell.name} failed, and its last line was: "
            f"{_last_line(cell.folder / _LOG)} Mend it; the same command continues there."
        )
    figures = _figures(cell)
    if figures is None:
        return None
    seconds, calls = _calls(cell)
    result = Result(figures, seconds, calls)
    return {"command": cell.command, "seeds": list(cell.seeds), **vars(result)}


def _tidy(cell: Cell, keep_models: bool) -> None:
    """Removes what a finished run only needs to resume, and a score's model."""
    if cell.kind not in (PRETRAINING, FINE_TUNING) or (cell.kind == FINE_TUNING and keep_models):
        return
    run = RunDirectory.open(cell.folder)
    leftovers = [run.checkpoints, run.best_checkpoint]
    for folder in leftovers + ([run.model] if cell.kind == FINE_TUNING else []):
        shutil.rmtree(folder, ignore_errors=True)


def _figures(cell: Cell) -> dict[str, float] | None:
    """The figures of `eval_results.txt`; None where a run that scores was stopped before its end.

    Data has none.
    """
    found = RunDirectory(cell.folder).read_eval_results()
    if not found:
        return None if cell.kind in (PRETRAINING, FINE_TUNING) else {}
    return {name: float(value) for name, value in found.items()}


def _note(cell: Cell, words: str) -> None:
    path = cell.folder / _CALLS
    try:
        with open(path, "a", encoding="utf-8", opener=without_following) as file:
            file.write(f"{words}\n")
    except OSError as error:
        raise not_written(path, error.strerror) from error


def _calls(cell: Cell) -> tuple[float, int]:
    """The seconds of all calls, and their number; a damaged line counts nothing."""
    text = (cell.folder / _CALLS).read_text(encoding="utf-8", errors="replace")
    seconds = re.findall(r"^ended ([0-9]{1,12}\.[0-9])$", text, re.MULTILINE)
    return sum(map(float, seconds)), text.split("\n").count("started")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "(nothing).")
