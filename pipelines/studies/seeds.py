"""One command, many runs: the spread of a task's scores over seeds, and the search for settings.

Each run is an ordinary run in a folder of its own, one after the other. `runs.json` and
`runs.md` say what the finished ones have in common.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, without_links
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.json_files import bounded_loads, json_text
from keras_bert_impl.options import ONCE, options_of
from keras_bert_impl.training.learning_curve import read_guesses
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.time_budget import counting_hours
from pipelines.fine_tuning.options import FineTuningConfig, ManyRunsConfig, Setting
from pipelines.fine_tuning.start import model_content, starting_point, wanted_splits
from pipelines.fine_tuning.task import Task, figure_prefixes
from pipelines.studies.commands import once
from pipelines.studies.scores import Spread, markdown_table, number, write_report

_OF_THE_WHOLE = {"output_dir", "num_seeds", "search"}
_WITHOUT_A_BEST = ("loss", "global_step", "best_step")

TaskOf = Callable[[Any], Task[Any, Any]]
"""Gives the task of a job's config; loads no TensorFlow."""


class _Stopped(Exception):  # noqa: N818
    """A run ended before its last step: a stop was asked for."""


@dataclass(frozen=True)
class SeedRun:
    """One of the runs, in a folder within that of all runs; no figures before it is finished."""

    folder: str
    seed: int
    setting: Setting
    figures: Mapping[str, float] = field(default_factory=dict)


def run_many(
    config: FineTuningConfig, task_of: TaskOf, flags_of: Callable[[Mapping[str, Any]], str]
) -> "RunsReport":
    """Trains and scores one model after the other, and writes their report after each of them.

    The same call again leaves finished runs alone and resumes the one that was stopped. `flags_of`
    gives the command of one run as a flag file, for the options that it has for itself.
    """
    if not (config.do_train and config.do_eval):
        raise UserError("several runs are compared by their scores; give `do_train` and `do_eval`.")
    if config.training.distribution_strategy == "multi_worker_mirrored":
        raise UserError(
            "`distribution_strategy=multi_worker_mirrored` trains one run at a time; leave out "
            "`num_seeds` and `search`, and give every run its own `output_dir` and `seed`."
        )
    task, directory = task_of(config), RunDirectory.open(config.output_dir)
    read = (path for split in wanted_splits(config, task) for path in task.files(split))
    files = {str(path): file_sha256(path) for path in read}
    start = starting_point(config, directory)
    model: dict[str, Any] = {"config": start.config.to_google(), "text": start.text.as_json()}
    model["vocabulary"] = start.text.vocabulary.sha256
    model["content"] = start.checkpoint and model_content(start)
    planned, shared = list(_planned(config)), dict[str, Any]()
    prefixes = figure_prefixes(task.evaluation_splits).values()
    compared = [f"{prefix}{name}" for name in task.compared_figures for prefix in prefixes]
    report = RunsReport(task.name, [], {}, len(planned), compared)
    kept = "finished runs are kept, and the same command continues"
    with directory.taken(), kept_so_far(kept):
        for one in planned:
            own = _config_of(config, one, flags_of)
            work = partial(_train_and_score, own, task_of, shared)
            try:
                values = once(own.output_dir, work, _facts(own, files=files, model=model))
            except _Stopped:
                break
            # Only now: a command that a run refuses leaves the flags of the one before.
            directory.write_flags(config.flags)
            guesses = read_guesses(RunDirectory(own.output_dir))
            report = replace(
                report,
                runs=[*report.runs, replace(one, figures=values["figures"])],
                constant={f"eval_{name}": guess.value for name, guess in guesses.items()},
            )
            report.write(config.output_dir)
    return report


def _planned(config: FineTuningConfig) -> Iterator[SeedRun]:
    """The runs in their order: all seeds of a setting, then those of the next one."""
    training = config.training
    own = Setting(training.train_batch_size, training.learning_rate, config.num_train_epochs)
    for setting in config.many.settings() or [own]:
        folder = f"{setting.folder}/" if config.many.search else ""
        for seed in config.many.seeds(training.seed):
            yield SeedRun(f"{folder}seed-{seed}", seed, setting)


def _config_of(
    config: FineTuningConfig, run: SeedRun, flags_of: Callable[[Mapping[str, Any]], str]
) -> FineTuningConfig:
    folder = without_links(config.output_dir / run.folder, len(Path(run.folder).parts))
    values: dict[str, Any] = {"seed": run.seed, **run.setting._asdict()}
    flags = flags_of({"output_dir": folder, **values})
    own = {"output_dir": folder, "num_train_epochs": values.pop("num_train_epochs")}
    training = replace(config.training, **values)
    return replace(config, **own, training=training, many=ManyRunsConfig(), flags=flags)


def _facts(config: FineTuningConfig, **more: Any) -> Any:
    """All that the figures of a run depend on, as JSON values."""
    options = {
        one.name: reduce(getattr, one.path, config)
        for one in options_of(type(config))
        if one.rules.resume != ONCE and one.name not in _OF_THE_WHOLE
    }
    return bounded_loads(json_text({"options": options, **more}, default=str))


def _train_and_score(
    config: FineTuningConfig, task_of: TaskOf, shared: dict[str, Any]
) -> Mapping[str, Any]:
    from pipelines.fine_tuning.run import TracedModel, fine_tune  # TensorFlow

    with counting_hours():
        results = fine_tune(config, task_of, shared.setdefault("model", TracedModel()))
    if results.training is None or not results.training.finished:
        raise _Stopped
    return {"figures": results.evaluation}


@dataclass(frozen=True)
class RunsReport:
    """Scores of the finished runs, compared."""

    task: str
    runs: Sequence[SeedRun]
    constant: Mapping[str, float]  # figures of one answer to every example
    expected_runs: int
    compared: Sequence[str] = ()  # the figure that chooses first; () compares all

    @property
    def finished(self) -> bool:
        """Whether all runs are."""
        return len(self.runs) == self.expected_runs

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that all runs have, the one that chooses first."""
        first, *others = (run.figures for run in self.runs)
        shared = [name for name in first if all(name in other for other in others)]
        names = [name for name in shared if not name.endswith(_WITHOUT_A_BEST)]
        return [name for name in self.compared if name in names] if self.compared else names

    def score(self, run: SeedRun) -> float:
        """A run's score by the metric that chooses."""
        return number(run.figures[self.metrics[0]])

    @property
    def guess(self) -> float:
        """What one answer to every example reaches."""
        return number(self.constant.get(self.metrics[0], 0.0))

    def failed(self, runs: Sequence[SeedRun]) -> int:
        """How many runs learned nothing: their score is at most that of one answer to all."""
        return sum(self.score(run) <= self.guess for run in runs)

    def settings(self) -> list[tuple[Setting, list[SeedRun]]]:
        """The settings with their runs, the best mean first."""
        groups: dict[Setting, list[SeedRun]] = {}
        for run in self.runs:
            groups.setdefault(run.setting, []).append(run)
        return sorted(groups.items(), key=lambda group: -Spread.of(map(self.score, group[1])).mean)

    @property
    def best(self) -> SeedRun:
        """The run with the best score; of equal ones the first."""
        return max(self.runs, key=self.score)

    def _spreads(self, runs: Sequence[SeedRun]) -> dict[str, Spread]:
        return {name: Spread.of(run.figures[name] for run in runs) for name in self.metrics}

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        settings = [
            {
                **setting._asdict(),
                "runs": len(runs),
                "failed": self.failed(runs),
                "best_run": max(runs, key=self.score).folder,
                "spread": {name: one._asdict() for name, one in self._spreads(runs).items()},
            }
            for setting, runs in self.settings()
        ]
        runs = [
            {"folder": run.folder, "seed": run.seed, **run.setting._asdict()}
            | {"failed": bool(self.failed([run])), **run.figures}
            for run in self.runs
        ]
        return {
            "task": self.task,
            "chosen_by": self.metrics[0],
            "constant_answer": dict(self.constant),
            "complete": self.finished,
            "best_run": self.best.folder,
            "failed": self.failed(self.runs),
            "settings": settings,
            "runs": runs,
        }

    def lines(self) -> list[str]:
        """A line a setting, for the terminal and for Markdown, and what was chosen."""
        header = ["batch", "rate", "epochs", "runs", *self.metrics, "median", "minimum", "failed"]
        rows = []
        for setting, runs in self.settings():
            spreads = self._spreads(runs)
            main = spreads[self.metrics[0]]
            rows.append([f"{value:g}" for value in (*setting, main.runs)])
            rows[-1] += map(str, spreads.values())
            rows[-1] += [f"{main.median:.4f}", f"{main.minimum:.4f}", f"{self.failed(runs)}"]
        best, missing = self.best, self.expected_runs - len(self.runs)
        return [
            *markdown_table(header, rows),
            "",
            f"Median, minimum and failures are of {self.metrics[0]}; a run failed if its score is "
            f"at most {self.guess:.4f}, that of one answer to every example.",
            f"Best on the dev set: {best.folder} ({self.metrics[0]} {self.score(best):.4f}).",
            *([f"{missing} of {self.expected_runs} runs are missing."] if missing else []),
        ]

    def write(self, folder: Path) -> list[Path]:
        """Writes `runs.md` and `runs.json`."""
        return write_report(folder / "runs.md", self.lines(), folder / "runs.json", self.as_json())
