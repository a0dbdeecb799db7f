"""A whole study: every command once, and the tables made of their result files after each."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.pictures import write_png
from keras_bert_impl.planning import parameters_by_part
from keras_bert_impl.progress import format_duration
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.config import (
    MODELS_TABLE,
    SIZES_TABLE,
    STEPS_FIGURE,
    RunAblationsConfig,
    TaskRun,
)
from pipelines.ablations.study import Row, Study, Table
from pipelines.many_runs.commands import Command, Tools
from pipelines.many_runs.spread import (
    Spread,
    differs_significantly,
    markdown_table,
    number,
    welch_interval,
    write_report,
)

_LOGGER = logging.getLogger(__name__)

RULE = (
    "Mean ± standard deviation of one run over the seeds. A star says that a figure differs "
    "significantly from the first of its column: Welch's 95 % interval of the difference of their "
    "means does not hold 0 (without correction for the number of pairs). With one seed of "
    "pre-training stars speak of these very models: another seed is not in the deviation."
)
DIFFERENCE = "How much more BERT has, with Welch's 95 % interval:"
_MISSING = "–"


def run_ablations(config: RunAblationsConfig, tools: Tools) -> tuple[list[str], list[Path]]:
    """Does what is not finished of a study; gives the lines of its report, and its files.

    A dry run gives the list of commands and does none.
    """
    study = Study(config, tools)
    report = Report(study)
    count = len(study.commands)
    if config.dry_run:
        return report.command_lines(), []
    with RunDirectory.open(config.output_dir).taken():
        for place, (name, command) in enumerate(study.commands.items(), start=1):
            if not command.finished():
                _LOGGER.info("run %d of %d: %s", place, count, name)
                command.figures(tools, config.keep_models)
                report.write(config.output_dir)
        return report.lines(), report.write(config.output_dir, draws=True)


class Report:
    """The report of a study, as far as its commands are finished."""

    def __init__(self, study: Study) -> None:
        self._study, self._tables = study, (study.check, *study.tables)

    def scores(self, table: Table, row: int, column: int) -> list[float]:
        """The scores of a field, of the runs that are finished; NaN counts as 0."""
        task = table.tasks[column]
        results = ((one, one.finished()) for one in table.fields[row][column])
        return [number(_figure(one, found["figures"], task)) for one, found in results if found]

    def lines(self) -> list[str]:
        """All of it in Markdown."""
        lines = ["# Ablations", "", RULE]
        for table in self._tables:
            lines += ["", f"## {table.title}", "", *self._table_lines(table)]
            if table.name == MODELS_TABLE:
                lines += ["", DIFFERENCE, "", *self._difference_lines(table)]
            if table.name == STEPS_FIGURE:
                lines += ["", "![scores against steps](steps.png)"]
        return [*lines, "", "## Runs", "", *self._run_lines()]

    def command_lines(self) -> list[str]:
        """All commands with the tables that they are for."""
        lines, count = list[str](), len(self._study.commands)
        for place, (name, command) in enumerate(self._study.commands.items(), start=1):
            users = ", ".join(self._study.users[name])
            lines += [f"[{place}/{count}] {name} (for {users})", f"    {command}"]
        return [*lines, f"{count} runs"]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "rule": RULE,
            "tables": {table.name: self._table_json(table) for table in self._tables},
            "runs": [
                {"name": name, "command": str(command), **(command.finished() or {})}
                for name, command in self._study.commands.items()
            ],
        }

    def write(self, folder: Path, draws: bool = False) -> list[Path]:
        """Writes `ablations.md` and `ablations.json`, and draws `steps.png` on request."""
        paths = write_report(
            folder / "ablations.md", self.lines(), folder / "ablations.json", self.as_json()
        )
        for table in self._tables if draws else ():
            if table.name == STEPS_FIGURE:
                self._draw(table, folder / "steps.png")
                paths.append(folder / "steps.png")
        return paths

    def _table_lines(self, table: Table) -> list[str]:
        columns = [self._column(table, column) for column in range(len(table.tasks))]
        rows = []
        for place, row in enumerate(table.rows):
            about = self._about_size(row) if table.name == SIZES_TABLE else []
            rows.append([row.label, *row.notes, *about, *(column[place] for column in columns)])
        further = ["parameters", "perplexity"] if table.name == SIZES_TABLE else []
        names = [task.name for task in table.tasks]
        return markdown_table(["", *table.notes, *further, *names], rows)

    def _column(self, table: Table, column: int) -> list[str]:
        groups = [self.scores(table, row, column) for row in range(len(table.rows))]
        stars = [" *" if differs_significantly(groups[0], scores) else "" for scores in groups]
        return [
            f"{Spread.of(scores)}{star}" if scores else _MISSING
            for scores, star in zip(groups, stars, strict=True)
        ]

    def _about_size(self, row: Row) -> list[str]:
        """The encoder's parameters, and the perplexity of masked tokens of the held-out text."""
        parts = parameters_by_part(self._study.config.model(row.start.size))
        encoder = sum(parts[name] for name in ("embeddings", "layers", "pooler"))
        results = [command.finished() for command in self._study.pretraining_of(row)]
        found = [math.exp(one["figures"]["masked_lm_loss"]) for one in results if one]
        perplexity = f"{Spread.of(found).mean:.2f}" if found else _MISSING
        return [f"{encoder / 1e6:.1f} M", perplexity]

    def _difference_lines(self, table: Table) -> list[str]:
        """What the first model has more than each of the others."""

        def difference(row: int, column: int) -> str:
            ours, theirs = (self.scores(table, one, column) for one in (0, row))
            if min(len(ours), len(theirs)) < 2:
                return _MISSING
            low, high = welch_interval(ours, theirs)
            return f"{(low + high) / 2:+.4f} ({low:+.4f} to {high:+.4f})"

        rows = [
            [row.label, *(difference(place, column) for column in range(len(table.tasks)))]
            for place, row in enumerate(table.rows)
        ]
        return markdown_table(["than", *(task.name for task in table.tasks)], rows[1:])

    def _run_lines(self) -> list[str]:
        lines, seconds = list[str](), 0.0
        for name, command in self._study.commands.items():
            found = command.finished()
            seconds += found["seconds"] if found else 0.0
            took = format_duration(found["seconds"]) if found else "not run yet"
            lines += [f"- {name}: {took}", f"  `{command}`"]
        total = f"The calls that finished them took {format_duration(seconds)}."
        return [total, "", *lines]

    def _table_json(self, table: Table) -> list[dict[str, Any]]:
        found = []
        for column, task in enumerate(table.tasks):
            groups = [self.scores(table, row, column) for row in range(len(table.rows))]
            for place, (row, scores) in enumerate(zip(table.rows, groups, strict=True)):
                values: dict[str, Any] = {
                    "row": row.label,
                    **dict(zip(table.notes, row.notes, strict=True)),
                    "column": task.name,
                    "figure": task.figure,
                    "scores": scores,
                    "runs": [command.name for command in table.fields[place][column]],
                }
                if scores:
                    spread = Spread.of(scores)
                    values |= {"mean": spread.mean, "sigma": spread.sigma}
                    values |= {"differs": differs_significantly(groups[0], scores)}
                found.append(values)
        return found

    def _draw(self, table: Table, path: Path) -> None:
        """A picture a task: scores against steps, a line a model."""
        from matplotlib.figure import Figure

        count = len(table.tasks)
        figure = Figure(figsize=(5.0 * count, 4.0), layout="constrained")
        for column, axes in enumerate(figure.subplots(1, count, squeeze=False)[0]):
            lines: dict[str, list[tuple[int, Spread]]] = {}
            for place, row in enumerate(table.rows):
                if scores := self.scores(table, place, column):
                    point = int(row.notes[0]), Spread.of(scores)
                    lines.setdefault(row.label, []).append(point)
            for label, points in lines.items():
                steps, spreads = zip(*points, strict=True)
                means = [one.mean for one in spreads]
                sigmas = [number(one.sigma) for one in spreads]
                axes.errorbar(steps, means, sigmas, marker="o", capsize=3, label=label)
            axes.set_xlabel("steps of pre-training")
            axes.set_ylabel(table.tasks[column].figure)
            axes.set_title(table.tasks[column].name)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        write_png(path, figure)


def _figure(command: Command, figures: Mapping[str, float], task: TaskRun) -> float:
    if task.figure not in figures:
        raise UserError(
            f"{command.folder}: has no {task.figure}, the figure of the task {task.name}; name one "
            f"of {', '.join(figures)} in `task`: finished runs stay."
        )
    return figures[task.figure]
