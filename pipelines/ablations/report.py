"""The tables of a study, made of the results of its cells: never typed."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.pictures import write_png
from keras_bert_impl.planning import parameters_by_part
from keras_bert_impl.progress import format_duration
from pipelines.ablations.config import MODELS_TABLE, SIZES_TABLE, STEPS_FIGURE, TaskRun
from pipelines.ablations.study import Column, Row, Study, Table
from pipelines.many_runs.cells import Cell, Result
from pipelines.many_runs.spread import (
    Spread,
    beats,
    markdown_table,
    number,
    shared_letters,
    welch_interval,
    without_nan,
)

RULE = (
    "Mean ± standard deviation of one run over the seeds. In a column, figures that share a letter "
    "cannot be told apart: Welch's 95 % interval of the difference of their means holds 0 (without "
    "correction for the number of pairs). Letters with one seed of pre-training speak of these "
    "very models: another seed of pre-training is not in the deviation."
)
DIFFERENCE = "How much more BERT has, with Welch's 95 % interval:"
_MISSING, _FEWEST = "–", 2


@dataclass(frozen=True)
class Check:
    """Whether a task can tell a pre-trained model from random weights.

    Attributes:
        task: its name.
        bert: the scores of BERT.
        random: those of random weights.
        holds: whether BERT's lie above by three standard deviations.
    """

    task: str
    bert: Spread
    random: Spread
    holds: bool


class Report:
    """The report of a study, as far as its cells are finished.

    Args:
        study: the tables.
        results: of the finished cells, by their names; may grow.
    """

    def __init__(self, study: Study, results: Mapping[str, Result]) -> None:
        self._study, self._results = study, results

    def scores(self, table: Table, row: Row, column: Column) -> list[float]:
        """The scores of a field, of the cells that are finished; NaN counts as 0.

        Raises:
            UserError: the task has no such figure.
        """
        return [
            number(_figure(cell, self._results[cell.name], column.task))
            for cell in table.fields[row, column]
            if cell.name in self._results
        ]

    def checks(self) -> list[Check]:
        """The comparison with random weights, of the tasks of which all runs are finished."""
        table, found = self._study.check, []
        bert, random = table.rows
        for column in table.columns:
            ours, theirs = (self.scores(table, row, column) for row in (bert, random))
            if all(cell.name in self._results for cell in _column_cells(table, column)):
                holds = beats(ours, theirs)
                found.append(Check(column.label, Spread.of(ours), Spread.of(theirs), holds))
        return found

    def lines(self) -> list[str]:
        """All of it in Markdown."""
        lines = ["# Ablations", "", RULE, "", *self._check_lines()]
        for table in self._study.tables:
            lines += ["", f"## {table.title}", "", *self._table_lines(table)]
            if table.name == MODELS_TABLE:
                lines += ["", DIFFERENCE, "", *self._difference_lines(table)]
            if table.name == STEPS_FIGURE:
                lines += ["", "![scores against steps](steps.png)"]
        return [*lines, "", "## Runs", "", *self._run_lines()]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "rule": RULE,
            "check": [
                {"task": one.task, "holds": one.holds, "bert": _plain(one.bert)}
                | {"random": _plain(one.random)}
                for one in self.checks()
            ],
            "tables": {table.name: self._table_json(table) for table in self._study.tables},
            "runs": [
                {"name": cell.name, "seeds": list(cell.seeds), "command": cell.command}
                | (vars(self._results[cell.name]) if cell.name in self._results else {})
                for cell in self._study.cells
            ],
        }

    def write(self, folder: Path) -> list[Path]:
        """Writes `ablations.md` and `ablations.json`.

        Raises:
            UserError: the folder cannot be written.
        """
        make_folder(folder)
        paths = [folder / "ablations.md", folder / "ablations.json"]
        with open_whole(paths[0]) as file:
            file.writelines(f"{line}\n" for line in self.lines())
        with open_whole(paths[1]) as file:
            file.write(json.dumps(without_nan(self.as_json()), indent=1) + "\n")
        return paths

    def draw(self, folder: Path) -> list[Path]:
        """Draws `steps.png`, where the recipe asks for the figure.

        Raises:
            UserError: the folder cannot be written.
        """
        path = folder / "steps.png"
        figures = [table for table in self._study.tables if table.name == STEPS_FIGURE]
        for table in figures:
            self._draw(table, path)
        return [path] if figures else []

    def _check_lines(self) -> list[str]:
        rows = [
            [one.task, str(one.bert), str(one.random), "yes" if one.holds else "NO"]
            for one in self.checks()
        ]
        header = ["task", "BERT", "random weights", "apart by 3 σ"]
        return ["## BERT beside random weights", "", *markdown_table(header, rows)]

    def _table_lines(self, table: Table) -> list[str]:
        further = ["parameters", "perplexity"] if table.name == SIZES_TABLE else []
        columns = [self._column(table, column) for column in table.columns]
        rows = [
            [
                row.label,
                *row.notes,
                *([self._parameters(row), self._perplexity(row)] if further else []),
                *(column[number] for column in columns),
            ]
            for number, row in enumerate(table.rows)
        ]
        header = ["", *table.notes, *further, *(column.label for column in table.columns)]
        return markdown_table(header, rows)

    def _difference_lines(self, table: Table) -> list[str]:
        """What the first model has more than each of the others."""
        bert, *others = table.rows
        rows = [
            [row.label, *(self._difference(table, (bert, row), column) for column in table.columns)]
            for row in others
        ]
        return markdown_table(["than", *(column.label for column in table.columns)], rows)

    def _difference(self, table: Table, pair: tuple[Row, Row], column: Column) -> str:
        ours, theirs = (self.scores(table, row, column) for row in pair)
        if min(len(ours), len(theirs)) < _FEWEST:
            return _MISSING
        low, high = welch_interval(ours, theirs)
        return f"{(low + high) / 2:+.4f} ({low:+.4f} to {high:+.4f})"

    def _column(self, table: Table, column: Column) -> list[str]:
        groups = [self.scores(table, row, column) for row in table.rows]
        return [
            f"{Spread.of(scores)} {letters}" if scores else _MISSING
            for scores, letters in zip(groups, shared_letters(groups), strict=True)
        ]

    def _parameters(self, row: Row) -> str:
        parts = parameters_by_part(self._study.config.model(row.start.size))
        encoder = sum(parts[name] for name in ("embeddings", "layers", "pooler"))
        return f"{encoder / 1e6:.1f} M"

    def _perplexity(self, row: Row) -> str:
        """Of masked tokens of the held-out text."""
        found = [
            math.exp(self._results[cell.name].figures["masked_lm_loss"])
            for cell in self._study.pretraining_of(row)
            if cell.name in self._results
        ]
        return f"{Spread.of(found).mean:.2f}" if found else _MISSING

    def _run_lines(self) -> list[str]:
        lines, seconds = list[str](), 0.0
        for cell in self._study.cells:
            result = self._results.get(cell.name)
            took = "not run yet"
            if result:
                seconds += result.seconds
                again = f" in {result.calls} calls, killed ones not counted" * (result.calls > 1)
                took = format_duration(result.seconds) + again
            lines += [f"- {cell.name}: {took}", f"  `{cell.command}`"]
        return [f"All runs took {format_duration(seconds)}.", "", *lines]

    def _table_json(self, table: Table) -> list[dict[str, Any]]:
        found = []
        for column in table.columns:
            groups = [self.scores(table, row, column) for row in table.rows]
            for row, scores, letters in zip(
                table.rows, groups, shared_letters(groups), strict=True
            ):
                values: dict[str, Any] = {
                    "row": row.label,
                    **dict(zip(table.notes, row.notes, strict=True)),
                    "column": column.label,
                    "figure": column.task.figure,
                    "scores": scores,
                    "runs": [cell.name for cell in table.fields[row, column]],
                }
                if scores:
                    spread = Spread.of(scores)
                    values |= {"mean": spread.mean, "sigma": spread.sigma, "letters": letters}
                found.append(values)
        return found

    def _draw(self, table: Table, path: Path) -> None:
        """A picture a task: scores against steps, a line a model."""
        from matplotlib.figure import Figure

        count = len(table.columns)
        figure = Figure(figsize=(5.0 * count, 4.0), layout="constrained")
        pictures = figure.subplots(1, count, squeeze=False)[0]
        for axes, column in zip(pictures, table.columns, strict=True):
            for label in dict.fromkeys(row.label for row in table.rows):
                points = [
                    (int(row.notes[0]), Spread.of(scores))
                    for row in table.rows
                    if row.label == label and (scores := self.scores(table, row, column))
                ]
                axes.errorbar(
                    [step for step, _ in points],
                    [spread.mean for _, spread in points],
                    [number(spread.sigma) for _, spread in points],
                    marker="o",
                    capsize=3,
                    label=label,
                )
            axes.set_xlabel("steps of pre-training")
            axes.set_ylabel(column.task.figure)
            axes.set_title(column.label)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        write_png(path, figure)


def _figure(cell: Cell, result: Result, task: TaskRun) -> float:
    if task.figure not in result.figures:
        raise UserError(
            f"{cell.folder}: has no {task.figure}, the figure of the task {task.name}; name one of "
            f"{', '.join(result.figures)} in `task`: finished runs stay."
        )
    return result.figures[task.figure]


def _column_cells(table: Table, column: Column) -> Iterable[Any]:
    return (cell for row in table.rows for cell in table.fields[row, column])


def _plain(spread: Spread) -> dict[str, float]:
    return {"runs": spread.runs, "mean": spread.mean, "sigma": spread.sigma}
