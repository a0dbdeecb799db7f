"""The whole study: every run once, and the tables after each of them."""

import logging
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import not_written, open_whole
from keras_bert_impl.interrupts import EXIT_SIGNAL
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.stop_signal import StopSignal
from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell, Result, in_order
from pipelines.ablations.config import RunAblationsConfig
from pipelines.ablations.planning import plan_lines
from pipelines.ablations.report import Report
from pipelines.ablations.study import Study
from pipelines.many_runs.runs import Cores, Run, Values, do_runs, stop_on_signal
from pipelines.many_runs.spread import SIGMAS

_LOGGER = logging.getLogger(__name__)

_CALLS, _LOG = "calls.txt", "log.txt"


class Programs(Protocol):
    """The tools, as a study uses them."""

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


@dataclass(frozen=True)
class AblationsResults:
    """Results of a call.

    Attributes:
        lines: the plan of a dry run, or the tables.
        files: the report's files.
    """

    lines: list[str]
    files: list[Path]


def run_ablations(config: RunAblationsConfig, programs: Programs) -> AblationsResults:
    """Runs what is not finished of a study, and writes its report after every run.

    The same call again leaves finished runs alone and resumes the one that was stopped or killed.

    Args:
        config: the recipe.
        programs: the tools.

    Raises:
        UserError: a tool refuses its flags or fails, or BERT does not beat random weights.
    """
    study = Study(config, programs.config_of)
    if config.dry_run:
        return AblationsResults(plan_lines(study, programs.config_of), [])
    directory = RunDirectory.open(config.output_dir)
    with directory.taken():
        return _run_all(study, programs)


class _StudyRuns:
    """The runs of a study and their results; the report follows each of them."""

    def __init__(self, study: Study, programs: Programs) -> None:
        self._study, config = study, study.config
        self._runs = {c.name: run_of(c, programs, config.keep_models) for c in study.cells}
        found = {name: Result.kept(run) for name, run in self._runs.items()}
        self._results = {name: result for name, result in found.items() if result}
        self.report = Report(study, self._results)

    def do(self, cells: Sequence[Cell], stop: StopSignal) -> None:
        """Runs those of the cells that have no result yet.

        Raises:
            UserError: a tool failed, or the study was stopped.
        """
        config, stopped = self._study.config, None
        missing = [self._runs[one.name] for one in cells if one.name not in self._results]
        among = list(self._runs.values())
        for run, values in do_runs(missing, stop, at_once=config.runs_at_once, among=among):
            if values is None:
                stopped = stopped or run
                continue
            result = self._results[run.name] = Result.of(values)
            name = f", {run.name}" if config.runs_at_once > 1 else ""
            _LOGGER.info("  %s%s", format_duration(result.seconds), name)
            self.report.write(config.output_dir)
        if stopped:
            raise UserError(
                f"{stopped.folder}: the run {stopped.name} was stopped before its end; the same "
                "command continues there."
            )
        if any(one.name not in self._results for one in cells):
            raise UserError(
                f"{config.output_dir}: the study was stopped between two runs; the same command "
                "continues."
            )


def _run_all(study: Study, programs: Programs) -> AblationsResults:
    folder, runs = study.config.output_dir, _StudyRuns(study, programs)
    runs.report.write(folder)
    with stop_on_signal() as stop:
        if not study.config.ignore_check:
            # Nothing but the check's own runs is started before it has passed.
            runs.do(in_order(study.check.cells), stop)
            _check(runs.report)
        runs.do(study.cells, stop)
    return AblationsResults(
        runs.report.lines(), [*runs.report.write(folder), *runs.report.draw(folder)]
    )


def _check(report: Report) -> None:
    """Refuses to go on with tasks on which BERT is no better than random weights.

    Raises:
        UserError: there is one.
    """
    failed = [one for one in report.checks() if not one.holds]
    if failed:
        raise UserError(
            f"BERT does not beat random weights by {SIGMAS:g} standard deviations on "
            f"{failed[0].task} ({failed[0].bert} against {failed[0].random}): no ablation can be "
            "told on it; take other tasks, more steps or more seeds, or go on with "
            "`ignore_check=True`."
        )


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
        with path.open("a", encoding="utf-8") as file:
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
