"""The report on runs of several seeds and settings: `runs.json`, its table, its picture."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import Count, read_typed
from keras_bert_impl.pictures import write_png
from pipelines.fine_tuning.options import Setting
from pipelines.many_runs.spread import Spread, markdown_table, number, without_nan

_WITHOUT_A_BEST = ("loss", "global_step")


@dataclass(frozen=True)
class ScoredRun:
    """A finished run.

    Attributes:
        folder: its folder, relative to that of all runs.
        seed: its seed.
        setting: how it trained.
        figures: what stands in its `eval_results.txt`, the main metric first among the metrics.
    """

    folder: str
    seed: int
    setting: Setting
    figures: Mapping[str, float]


@dataclass(frozen=True)
class RunsReport:
    """Scores of many runs, compared.

    Attributes:
        task: the task's name.
        runs: the finished runs; at least one.
        constant: the figures of the answer that is the same for every example, by their names.
        expected_runs: how many there will be.
        compared: the figures that are compared, the one that chooses first; the others stand in the
            lists of runs only. Nothing compares all.
    """

    task: str
    runs: Sequence[ScoredRun]
    constant: Mapping[str, float]
    expected_runs: int
    compared: Sequence[str] = ()

    @property
    def metrics(self) -> list[str]:
        """The metrics' names, the one that chooses first."""
        names = [name for name in self.runs[0].figures if not name.endswith(_WITHOUT_A_BEST)]
        if not self.compared:
            return names
        return [name for name in self.compared if name in names]

    @property
    def metric(self) -> str:
        """The name of the metric that chooses: the first one that is compared."""
        return self.metrics[0]

    def score(self, run: ScoredRun) -> float:
        """A run's score by the metric that chooses."""
        return number(run.figures[self.metric])

    def failed(self, run: ScoredRun) -> bool:
        """Whether a run learned nothing: its score is at most the constant answer's."""
        return self.score(run) <= self.constant.get(self.metric, 0.0)

    def settings(self) -> list[tuple[Setting, list[ScoredRun]]]:
        """The settings with their runs, the best mean first."""
        groups: dict[Setting, list[ScoredRun]] = {}
        for run in self.runs:
            groups.setdefault(run.setting, []).append(run)
        return sorted(groups.items(), key=lambda group: -self.spread(group[1]).mean)

    def spread(self, runs: Iterable[ScoredRun], metric: str | None = None) -> Spread:
        """The spread of a metric; by default of the one that chooses."""
        return Spread.of(run.figures[metric or self.metric] for run in runs)

    @property
    def best(self) -> ScoredRun:
        """The run with the best score; of equal ones the first."""
        return max(self.runs, key=self.score)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values; NaN is null."""
        return without_nan(
            {
                "task": self.task,
                "chosen_by": self.metric,
                "constant_answer": dict(self.constant),
                "complete": len(self.runs) == self.expected_runs,
                "best_run": self.best.folder,
                "failed": sum(map(self.failed, self.runs)),
                "settings": [self._setting(*group) for group in self.settings()],
                "runs": [
                    {
                        "folder": run.folder,
                        "seed": run.seed,
                        **run.setting._asdict(),
                        "failed": self.failed(run),
                        **run.figures,
                    }
                    for run in self.runs
                ],
            }
        )

    def _setting(self, setting: Setting, runs: list[ScoredRun]) -> dict[str, Any]:
        return {
            **setting._asdict(),
            "runs": len(runs),
            "failed": sum(map(self.failed, runs)),
            "best_run": max(runs, key=self.score).folder,
            "spread": {name: vars(self.spread(runs, name)) for name in self.metrics},
        }

    def lines(self) -> list[str]:
        """A table a setting, for the terminal and for Markdown, and what was chosen."""
        header = ["batch", "rate", "epochs", "runs", *self.metrics, "median", "minimum", "failed"]
        rows = [self._cells(setting, runs) for setting, runs in self.settings()]
        best, missing = self.best, self.expected_runs - len(self.runs)
        constant = self.constant.get(self.metric)
        return [
            *markdown_table(header, rows),
            "",
            f"Median, minimum and failures are of {self.metric}; a run failed if its score is at "
            f"most {number(constant or 0.0):.4f}, that of one answer to every example.",
            f"Best on the dev set: {best.folder} ({self.metric} {self.score(best):.4f}).",
            *([f"{missing} of {self.expected_runs} runs are missing."] if missing else []),
        ]

    def _cells(self, setting: Setting, runs: list[ScoredRun]) -> list[str]:
        main = self.spread(runs)
        return [
            f"{setting.train_batch_size}",
            f"{setting.learning_rate:g}",
            f"{setting.num_train_epochs:g}",
            f"{main.runs}",
            *(str(self.spread(runs, name)) for name in self.metrics),
            f"{main.median:.4f}",
            f"{main.minimum:.4f}",
            f"{sum(map(self.failed, runs))}",
        ]

    def write(self, folder: Path) -> list[Path]:
        """Writes `runs.json`, `runs.tsv` (a line a run), `runs.md` and `runs.png`.

        Raises:
            UserError: the folder cannot be written.
        """
        paths = [folder / f"runs.{ending}" for ending in ("json", "tsv", "md", "png")]
        values = self.as_json()
        with open_whole(paths[0]) as file:
            file.write(json.dumps(values, indent=1) + "\n")
        with open_whole(paths[1]) as file:
            file.write("\t".join(values["runs"][0]) + "\n")
            for run in values["runs"]:
                file.write("\t".join(map(_cell, run.values())) + "\n")
        with open_whole(paths[2]) as file:
            file.writelines(f"{line}\n" for line in self.lines())
        _draw(self, paths[3])
        return paths


class _Spread(TypedDict):
    runs: Count
    # None is what JSON has for the NaN of a run that diverged.
    mean: float | None
    sigma: float | None
    median: float | None
    minimum: float | None
    maximum: float | None


class _SettingReport(TypedDict):
    spread: dict[str, _Spread]


class _Report(TypedDict):
    """What is read of `runs.json`."""

    settings: list[_SettingReport]


def stored_spreads(folder: Path) -> dict[str, Spread]:
    """The spread of each compared figure that `runs.json` says; empty where there is none.

    Args:
        folder: of runs of one setting, finished or not.
    """
    try:
        report = read_typed(folder / "runs.json", _Report, "run the same command again")
    except UserError:
        return {}
    if len(report["settings"]) != 1:
        return {}
    return {name: _spread_of(one) for name, one in report["settings"][0]["spread"].items()}


def _spread_of(one: _Spread) -> Spread:
    def number(value: float | None) -> float:
        return math.nan if value is None else value  # JSON has no NaN

    figures = (one["mean"], one["sigma"], one["median"], one["minimum"], one["maximum"])
    return Spread(one["runs"], *map(number, figures))


def _draw(report: RunsReport, path: Path) -> None:
    """Draws a point a run, a column a setting, with mean and deviation next to the points."""
    from matplotlib.figure import Figure

    groups = report.settings()
    figure = Figure(figsize=(max(4.0, 1.0 + 0.6 * len(groups)), 5.0), layout="constrained")
    axes = figure.add_subplot()
    for column, (_, runs) in enumerate(groups):
        axes.plot([column] * len(runs), [report.score(run) for run in runs], "o", alpha=0.5)
        spread = report.spread(runs)
        bar = 0.0 if math.isnan(spread.sigma) else spread.sigma
        axes.errorbar(column + 0.2, spread.mean, bar, fmt="_k", capsize=4)
    constant = report.constant.get(report.metric, 0.0)
    axes.axhline(constant, linestyle="--", color="grey", label="one answer to every example")
    names = [s.folder.replace("_", "\n") for s, _ in groups]
    axes.set_xticks(range(len(groups)), names, fontsize=7)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_ylabel(report.metric)
    axes.set_title(f"{report.task}: {len(report.runs)} run{'s' * (len(report.runs) > 1)}")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8)
    write_png(path, figure)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
