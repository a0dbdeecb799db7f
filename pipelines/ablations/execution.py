"""Runs cells, and keeps what came of them."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell

_RESULT, _CALLS, _LOG = "result.json", "calls.txt", "log.txt"


class Programs(Protocol):
    """The tools, as a study uses them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """Gives the config of a tool's job, without starting it.

        Raises:
            UserError: the tool refuses its flags.
        """
        ...

    def run(self, tool: str, flags: Sequence[str], log: Path, cores: frozenset[int] | None) -> int:
        """Runs a tool to its end; gives its exit code.

        Args:
            tool: its name.
            flags: its flags.
            log: the file that gets what it prints.
            cores: the processors that it may use; None: those of this process.
        """
        ...


@dataclass(frozen=True)
class Result:
    """What came of a cell.

    Attributes:
        figures: those of its `eval_results.txt`; none of data.
        seconds: that its calls took, but for calls that were killed.
        calls: how often it was started; above 1 it was stopped or killed in between.
    """

    figures: dict[str, float]
    seconds: float
    calls: int


def stored_result(cell: Cell) -> Result | None:
    """The result of a finished cell; None without one."""
    try:
        values = json.loads((cell.folder / _RESULT).read_text(encoding="utf-8"))
        return Result(dict(values["figures"]), float(values["seconds"]), int(values["calls"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_cell(
    cell: Cell, programs: Programs, keep_models: bool, cores: frozenset[int] | None = None
) -> Result:
    """Runs a cell, or goes on with one that was stopped, and keeps its result.

    Its own run resumes as any other: by the same command in the same folder.

    Args:
        cell: all that it needs is finished.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
        cores: the processors that it may use; None: those of this process.

    Raises:
        UserError: the tool failed.
    """
    make_folder(cell.folder)
    for name, text in cell.files.items():
        with open_whole(cell.folder / name) as file:
            file.write(text)
    start = time.monotonic()
    _note(cell, "started")
    code = programs.run(cell.tool, cell.arguments, cell.folder / _LOG, cores)
    _note(cell, f"ended {time.monotonic() - start:.1f}")
    if code != 0:
        raise UserError(
            f"{cell.folder / _LOG}: the run {cell.name} failed, and its last line was: "
            f"{_last_line(cell.folder / _LOG)} Mend it; the same command continues there."
        )
    seconds, calls = _calls(cell)
    result = Result(_figures(cell), seconds, calls)
    values = {"command": cell.command, "seeds": list(cell.seeds), **vars(result)}
    with open_whole(cell.folder / _RESULT) as file:
        file.write(json.dumps(values, indent=1) + "\n")
    tidy(cell, keep_models)
    return result


def tidy(cell: Cell, keep_models: bool) -> None:
    """Removes what a finished run only needs to resume, and a score's model."""
    if cell.kind not in (PRETRAINING, FINE_TUNING) or (cell.kind == FINE_TUNING and keep_models):
        return
    run = RunDirectory.open(cell.folder)
    leftovers = [run.checkpoints, run.best_checkpoint]
    for folder in leftovers + ([run.model] if cell.kind == FINE_TUNING else []):
        shutil.rmtree(folder, ignore_errors=True)


def _figures(cell: Cell) -> dict[str, float]:
    """The figures of `eval_results.txt`.

    Raises:
        UserError: a run that scores left none, because it was asked to stop.
    """
    path = cell.folder / "eval_results.txt"
    if not path.exists():
        if cell.kind in (PRETRAINING, FINE_TUNING):
            raise UserError(
                f"{cell.folder}: the run {cell.name} was stopped before its end; the same command "
                "continues there."
            )
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def _note(cell: Cell, words: str) -> None:
    with (cell.folder / _CALLS).open("a", encoding="utf-8") as file:
        file.write(f"{words}\n")


def _calls(cell: Cell) -> tuple[float, int]:
    lines = (cell.folder / _CALLS).read_text(encoding="utf-8").split("\n")
    seconds = [float(line.split()[1]) for line in lines if line.startswith("ended ")]
    return sum(seconds), lines.count("started")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "(nothing).")
