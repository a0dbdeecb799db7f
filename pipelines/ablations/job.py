"""The whole study: every run once, and the tables after each of them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.cells import Cell, in_order
from pipelines.ablations.comparison import SIGMAS
from pipelines.ablations.config import RunAblationsConfig
from pipelines.ablations.execution import Programs, Result, needs_of, run_cells, stored_result
from pipelines.ablations.report import Report
from pipelines.ablations.study import Study

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class AblationsResults:
    """What a call gave.

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
        return AblationsResults(plan_lines(study, programs), [])
    directory = RunDirectory.open(config.output_dir)
    with directory.taken():
        return _run_all(study, programs)


def _run_all(study: Study, programs: Programs) -> AblationsResults:
    results = {cell.name: found for cell in study.cells if (found := stored_result(cell))}
    report = Report(study, results)
    report.write(study.config.output_dir)
    if not study.config.ignore_check:
        # Nothing but the check's own runs is started before it has passed.
        _run(in_order(study.check.cells), study, programs, report, results)
        _check(report)
    _run(study.cells, study, programs, report, results)
    folder = study.config.output_dir
    return AblationsResults(report.lines(), [*report.write(folder), *report.draw(folder)])


def _run(
    cells: Sequence[Cell],
    study: Study,
    programs: Programs,
    report: Report,
    results: dict[str, Result],
) -> None:
    """Runs those of the cells that have no result yet; the report follows each of them."""
    config, numbers = study.config, {cell.name: n for n, cell in enumerate(study.cells, start=1)}

    def started(cell: Cell) -> None:
        _LOGGER.info("run %d of %d: %s", numbers[cell.name], len(numbers), cell.name)

    missing = [cell for cell in cells if cell.name not in results]
    at_once = config.runs_at_once
    for cell, result in run_cells(missing, programs, config.keep_models, at_once, started):
        beside = f", {cell.name}" if at_once > 1 else ""
        _LOGGER.info("  %s%s", format_duration(result.seconds), beside)
        results[cell.name] = result
        report.write(config.output_dir)


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


def plan_lines(study: Study, programs: Programs) -> list[str]:
    """All runs with their commands, the tables that they are for, and what they take.

    Raises:
        UserError: a tool refuses its flags.
    """
    lines, operations, unknown = list[str](), 0.0, 0
    users, cells = study.users(), study.cells
    for number, cell in enumerate(cells, start=1):
        lines += [f"[{number}/{len(cells)}] {cell.name} (for {', '.join(users[cell.name])})"]
        lines += [f"    {cell.command}"]
        needs = needs_of(cell, programs.config_of)
        if needs is None:
            programs.config_of(cell.tool, cell.arguments)  # only to see that the flags are right
            continue
        lines.append(
            f"    {needs.parameters:,} parameters, {needs.memory / 1e9:.2f} GB"
            + _work(needs.operations, study.config.operations_per_second)
        )
        operations += needs.operations or 0.0
        unknown += needs.operations is None
    missing = f" (without {unknown} runs whose files are not there)" if unknown else ""
    total = _work(operations, study.config.operations_per_second)
    return [*lines, f"{len(cells)} runs{total}{missing}"]


def _work(operations: float | None, rate: float | None) -> str:
    if operations is None:
        return ""
    words = f", {operations:.3g} operations"
    return words + (f", {format_duration(operations / rate)}" if rate else "")
