"""The whole study: every run once, and the tables after each of them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.stop_signal import StopSignal
from pipelines.ablations.config import RunAblationsConfig
from pipelines.ablations.planning import plan_lines
from pipelines.ablations.report import Report
from pipelines.ablations.study import Study
from pipelines.many_runs.cells import Cell, Programs, Result, in_order, run_of
from pipelines.many_runs.runs import do_runs, stop_on_signal
from pipelines.many_runs.spread import SIGMAS

_LOGGER = logging.getLogger(__name__)


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
