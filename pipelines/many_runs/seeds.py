"""One command, many runs: the spread of a task's score over seeds, and the search for settings.

Each run is an ordinary run, one after the other. The rows of the data are made by the first run
and read by all.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, without_links
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.options import ONCE, options_of
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.options import FineTuningConfig, ManyRunsConfig, Setting
from pipelines.fine_tuning.task import ComparedTask, figure_prefixes
from pipelines.many_runs.runs import (
    FIGURES,
    Cores,
    Run,
    Values,
    do_runs,
    in_own_process,
    stop_on_signal,
)
from pipelines.many_runs.seeds_report import RunsReport, ScoredRun

_LOGGER = logging.getLogger(__name__)

_OF_THE_WHOLE = {"output_dir", "work_dir", "num_seeds", "search"}

Changes = Mapping[str, Any]

TaskOf = Callable[[Any], ComparedTask[Any, Any]]
"""Gives the task of a job's config; a function of a module, which loads no TensorFlow."""


@dataclass(frozen=True)
class ManyRunsResults:
    """Results of many runs.

    Attributes:
        report: the finished runs; None without any.
        finished: whether all runs are.
        files: the report's files.
    """

    report: RunsReport | None
    finished: bool
    files: list[Path]


@dataclass(frozen=True)
class _SeedRun:
    """One of the runs: its folder within that of all runs, what it varies, and its config."""

    folder: str
    seed: int
    setting: Setting
    config: FineTuningConfig


def run_many(
    config: FineTuningConfig,
    task_of: TaskOf,
    flags_of: Callable[[Changes], str],
    set_up: Callable[[], None],
) -> ManyRunsResults:
    """Trains and scores one model after the other, and writes their spread after each of them.

    The same call again leaves finished runs alone, resumes the one that was stopped and starts the
    others. More seeds may be asked for later. SIGTERM stops the present run at a checkpoint.

    Args:
        config: what to train; `config.many` says how many of it.
        task_of: gives the task that a config describes.
        flags_of: the command of one run as a flag file, given the options that it has for itself.
        set_up: called in the process of each run before anything else, e.g. to show its log; a
            function of a module.

    Raises:
        UserError: an option or a file is not what it should be, or another process works here.
    """
    if not (config.do_train and config.do_eval):
        raise UserError("several runs are compared by their scores; give `do_train` and `do_eval`.")
    if config.training.distribution_strategy == "multi_worker_mirrored":
        raise UserError(
            "`distribution_strategy=multi_worker_mirrored` trains one run at a time; leave out "
            "`num_seeds` and `search`, and give every run its own `output_dir` and `seed`."
        )
    task = task_of(config)
    directory = RunDirectory.open(config.output_dir)
    with directory.taken(), stop_on_signal() as stop:
        planned = {one.folder: one for one in _planned(config, flags_of)}
        report = _Report(config.output_dir, task, planned)
        files = _file_hashes(config, task)

        def work(one: _SeedRun, _cores: Cores) -> Values | None:
            remedy = f"the same command continues with {one.folder}"
            figures = in_own_process(_train_and_score, one.config, task_of, set_up, remedy=remedy)
            # Only now: a command that a run refuses leaves the flags of the one before.
            directory.write_flags(config.flags)
            return None if figures is None else {"figures": figures}

        runs = [
            Run(name, one.config.output_dir, partial(work, one), of=_identity(one.config, files))
            for name, one in planned.items()
        ]
        found = {run.name: kept["figures"] for run in runs if (kept := run.kept(figures=FIGURES))}
        results = report.write(found)
        missing = [run for run in runs if run.name not in found]
        for run, values in do_runs(missing, stop, among=runs):
            if values is not None:
                found[run.name] = values["figures"]
                results = report.write(found)
    return results


def _planned(config: FineTuningConfig, flags_of: Callable[[Changes], str]) -> Iterator[_SeedRun]:
    """The runs in their order: all seeds of a setting, then those of the next one."""
    training = config.learning
    own = Setting(training.train_batch_size, training.learning_rate, config.num_train_epochs)
    for setting in config.many.settings() or [own]:
        folder = f"{setting.folder}/" if config.many.search else ""
        for seed in config.many.seeds(training.seed):
            name = f"{folder}seed-{seed}"
            yield _SeedRun(name, seed, setting, _config_of(config, flags_of, name, seed, setting))


def _config_of(
    config: FineTuningConfig,
    flags_of: Callable[[Changes], str],
    folder: str,
    seed: int,
    setting: Setting,
) -> FineTuningConfig:
    places: dict[str, Any] = {
        "output_dir": without_links(config.output_dir / folder, len(Path(folder).parts)),
        "work_dir": config.work_dir or config.output_dir / "work",
    }
    training = replace(
        config.training,
        seed=seed,
        train_batch_size=setting.train_batch_size,
        learning_rate=setting.learning_rate,
    )
    return replace(
        config,
        **places,
        num_train_epochs=setting.num_train_epochs,
        training=training,
        many=ManyRunsConfig(),
        flags=flags_of({**places, "seed": seed, **setting._asdict()}),
    )


class _Report:
    """Writes what the finished runs say together."""

    def __init__(
        self, folder: Path, task: ComparedTask[Any, Any], planned: Mapping[str, _SeedRun]
    ) -> None:
        self._folder, self._task, self._planned = folder, task, planned
        prefixes = figure_prefixes(task.evaluation_splits)
        main, *_ = prefixes
        self._constant = {
            f"{prefixes[main]}{name}": score for name, score in task.constant_scores(main).items()
        }
        self._compared = [
            f"{prefix}{name}" for name in task.compared_figures for prefix in prefixes.values()
        ]

    def write(self, found: Mapping[str, Mapping[str, float]]) -> ManyRunsResults:
        """Writes the report of the runs whose figures are there."""
        scored = tuple(
            ScoredRun(name, one.seed, one.setting, dict(found[name]))
            for name, one in self._planned.items()
            if name in found
        )
        if not scored:
            return ManyRunsResults(None, finished=False, files=[])
        count = len(self._planned)
        report = RunsReport(self._task.name, scored, self._constant, count, self._compared)
        return ManyRunsResults(report, len(scored) == count, report.write(self._folder))


def _identity(config: FineTuningConfig, files: Mapping[str, str]) -> dict[str, Any]:
    """All that the figures of a run depend on, as JSON values."""
    options = {
        one.name: reduce(getattr, one.path, config)
        for one in options_of(type(config))
        if one.rules.resume != ONCE and one.name not in _OF_THE_WHOLE
    }
    return bounded_loads(json.dumps({"options": options, "files": files}, default=str))


def _train_and_score(
    config: FineTuningConfig, task_of: TaskOf, set_up: Callable[[], None]
) -> dict[str, float] | None:
    """One run, in its own process; None where it was stopped before its end."""
    set_up()
    from pipelines.fine_tuning.run import fine_tune

    results = fine_tune(config, task_of)
    finished = results.training is not None and results.training.finished
    return results.evaluation if finished else None


def _file_hashes(config: FineTuningConfig, task: ComparedTask[Any, Any]) -> dict[str, str]:
    """The SHA-256 of every file that the runs read; a missing one is named before any starts."""
    splits = [task.train_split, *task.evaluation_splits]
    splits += task.test_splits if config.do_predict else ()
    return {str(path): file_sha256(path) for split in splits for path in task.files(split)}
