"""The whole study: every run once, one after the other, and the tables after each of them."""

import logging
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.comparison import SIGMAS
from pipelines.ablations.config import RunAblationsConfig
from pipelines.ablations.execution import Programs, Result, run_cell, stored_result
from pipelines.ablations.planning import needs_of
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
    cells, results = study.cells, dict[str, Result]()
    first = {cell.name for cell in study.check.cells}
    report = Report(study, results)
    for number, cell in enumerate(cells, start=1):
        result = stored_result(cell)
        if result is None:
            _LOGGER.info("run %d of %d: %s", number, len(cells), cell.name)
            result = run_cell(cell, programs, study.config.keep_models)
            _LOGGER.info("  %s", format_duration(result.seconds))
        results[cell.name] = result
        report.write(study.config.output_dir)
        first.discard(cell.name)
        if not first and not study.config.ignore_check:
            _check(report)
    folder = study.config.output_dir
    return AblationsResults(report.lines(), [*report.write(folder), *report.draw(folder)])


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
