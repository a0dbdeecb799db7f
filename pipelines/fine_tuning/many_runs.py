"""One command, many runs: the spread of a task's score over seeds, and the search for settings.

Every run is a run as any other, in a folder of its own and in a process of its own, one after the
other. A process of its own because TensorFlow keeps what a run leaves behind: memory of the
device, compiled steps, logical devices and XLA's settings, which can be made only once. So the
tenth run starts as the first one does, its seed alone says what it draws, and a run that is killed
takes no other with it. The process that starts them never loads TensorFlow, and so holds no memory
of the device.

The rows of the data are made by the first run and read by all.
"""

import contextlib
import hashlib
import json
import logging
import math
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_input, open_whole
from keras_bert_impl.options import ONCE, options_of
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.stop_signal import StopSignal
from pipelines.fine_tuning.options import FineTuningConfig, ManyRunsConfig, Setting
from pipelines.fine_tuning.run_spread import RunsReport, ScoredRun
from pipelines.fine_tuning.task import ComparedTask, figure_prefixes
from pipelines.processes import worker_pool

_LOGGER = logging.getLogger(__name__)

_RESULT = "result.json"
_OF_THE_WHOLE = {"output_dir", "work_dir", "num_seeds", "search"}

Changes = Mapping[str, Any]

TaskOf = Callable[[Any], ComparedTask[Any, Any]]
"""Gives the task of a job's config; a function of a module, which loads no TensorFlow."""


@dataclass(frozen=True)
class ManyRunsResults:
    """What many runs gave.

    Attributes:
        report: the finished runs; None without any.
        finished: whether all runs are.
        files: the report's files.
    """

    report: RunsReport | None
    finished: bool
    files: list[Path]


@dataclass(frozen=True)
class _Run:
    """One of the runs before it is started: its folder and its config."""

    folder: str
    seed: int
    setting: Setting
    config: FineTuningConfig

    @property
    def result(self) -> Path:
        return self.config.output_dir / _RESULT


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
    with directory.taken(), _sigterm_passed_on() as stop:
        keep_flags = partial(directory.write_flags, config.flags)
        processes = partial(_train_and_score, task_of=task_of, set_up=set_up)
        return _Runs(config, task, flags_of, processes, stop, keep_flags).run_all()


class _Runs:
    """All runs of one command."""

    def __init__(
        self,
        config: FineTuningConfig,
        task: ComparedTask[Any, Any],
        flags_of: Callable[[Changes], str],
        train_and_score: Callable[[FineTuningConfig], dict[str, float] | None],
        stop: StopSignal,
        keep_flags: Callable[[], None],
    ) -> None:
        self._config, self._task = config, task
        self._flags_of, self._train_and_score, self._stop = flags_of, train_and_score, stop
        self._keep_flags = keep_flags
        prefixes = figure_prefixes(task.evaluation_splits)
        main, *_ = prefixes
        self._constant = {
            f"{prefixes[main]}{name}": score for name, score in task.constant_scores(main).items()
        }
        self._compared = [
            f"{prefix}{name}" for name in task.compared_figures for prefix in prefixes.values()
        ]
        self._files = _file_hashes(config, task)

    def run_all(self) -> ManyRunsResults:
        """Runs what is not finished; the report is written after each run."""
        runs, scored, files = list(self._runs()), list[ScoredRun](), list[Path]()
        report = None
        for number, run in enumerate(runs, start=1):
            figures = self._read(run)
            if figures is None and not self._stop.requested:
                _LOGGER.info("run %d of %d: %s", number, len(runs), run.folder)
                figures = self._train(run)
            if figures is None:
                return ManyRunsResults(report, finished=False, files=files)
            scored.append(ScoredRun(run.folder, run.seed, run.setting, figures))
            report = RunsReport(
                self._task.name,
                tuple(scored),
                self._constant,
                len(runs),
                self._compared,
            )
            files = report.write(self._config.output_dir)
        return ManyRunsResults(report, finished=True, files=files)

    def _runs(self) -> Iterator[_Run]:
        """The runs in their order: all seeds of a setting, then those of the next one."""
        config, training = self._config, self._config.training
        own = Setting(training.train_batch_size, training.learning_rate, config.num_train_epochs)
        for setting in config.many.settings() or [own]:
            folder = f"{setting.folder}/" if config.many.search else ""
            for seed in config.many.seeds(training.seed):
                yield self._run(f"{folder}seed-{seed}", seed, setting)

    def _run(self, folder: str, seed: int, setting: Setting) -> _Run:
        config = self._config
        changes = {
            "output_dir": config.output_dir / folder,
            "work_dir": config.work_dir or config.output_dir / "work",
            "seed": seed,
            **setting._asdict(),
        }
        training = replace(
            config.training,
            seed=seed,
            train_batch_size=setting.train_batch_size,
            learning_rate=setting.learning_rate,
        )
        one = replace(
            config,
            output_dir=changes["output_dir"],
            work_dir=changes["work_dir"],
            num_train_epochs=setting.num_train_epochs,
            training=training,
            many=ManyRunsConfig(),
            flags=self._flags_of(changes),
        )
        return _Run(folder, seed, setting, one)

    def _train(self, run: _Run) -> dict[str, float] | None:
        """Runs one in its own process; None where it was stopped before its end."""
        make_folder(run.config.output_dir)
        context = multiprocessing.get_context("spawn")
        remedy = f"the same command continues with {run.folder}"
        try:
            with worker_pool(1, context, remedy) as pool:
                started = pool.submit(self._train_and_score, run.config)
                if self._stop.requested:  # SIGTERM may have come before there was a process
                    _terminate_children()
                figures = started.result()
        except UserError:
            if self._stop.requested:  # it was stopped before it could save anything
                return None
            raise
        self._keep_flags()  # only now: a command that a run refuses leaves the old one
        if figures is not None:
            self._write(run, figures)
        return None if self._stop.requested else figures

    def _write(self, run: _Run, figures: dict[str, float]) -> None:
        with open_whole(run.result) as file:
            json.dump({"of": self._identity(run), "figures": figures}, file, indent=1)

    def _read(self, run: _Run) -> dict[str, float] | None:
        """The figures of a finished run of the same options and files; None without."""
        try:
            values = json.loads(run.result.read_text(encoding="utf-8"))
            same = values["of"] == self._identity(run)
            return dict(values["figures"]) if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _identity(self, run: _Run) -> dict[str, Any]:
        """What a run's figures follow from, as JSON values."""
        options = {
            one.name: reduce(getattr, one.path, run.config)
            for one in options_of(type(run.config))
            if one.rules.resume != ONCE and one.name not in _OF_THE_WHOLE
        }
        return json.loads(json.dumps({"options": options, "files": self._files}, default=str))


def _train_and_score(
    config: FineTuningConfig, task_of: TaskOf, set_up: Callable[[], None]
) -> dict[str, float] | None:
    """One run, in its own process."""
    set_up()
    from pipelines.fine_tuning.run import fine_tune

    results = fine_tune(config, task_of)
    for name, expected in results.expected.items():
        _LOGGER.info("%s = %.4f (%s)", name, results.evaluation.get(name, math.nan), expected)
    finished = results.training is not None and results.training.finished
    return results.evaluation if finished else None


def _file_hashes(config: FineTuningConfig, task: ComparedTask[Any, Any]) -> dict[str, str]:
    """The SHA-256 of every file that the runs read; a missing one is named before any starts."""
    splits = [task.train_split, *task.evaluation_splits]
    splits += task.test_splits if config.do_predict else ()
    return {str(path): _sha256(path) for split in splits for path in task.files(split)}


def _sha256(path: Path) -> str:
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


@contextlib.contextmanager
def _sigterm_passed_on() -> Iterator[StopSignal]:
    """Inside the block, SIGTERM goes to the present run, which saves and ends."""
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return

    def handle(_number: int, _frame: Any) -> None:
        stop.request()
        _terminate_children()

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate_children() -> None:
    for process in multiprocessing.active_children():
        process.terminate()
