"""Runs the cells of a study, each once, several at a time where the machine has the processors."""

import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.planning import plan_run
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.ablations.cells import FINE_TUNING, PRETRAINING, Cell
from pipelines.ablations.experiments import ConfigOf
from pipelines.corpora.unpacking import open_unpacked
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.runs.pretraining_config import RunPretrainingConfig
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.tagging.options import RunNerConfig

_BYTES_OF_A_TOKEN = 4  # of a task's files, labels and columns included
_READ_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Needs:
    """What a run takes.

    Attributes:
        parameters: numbers of the pre-training model.
        memory: bytes, by plan_run's estimate.
        operations: of the matrix products; None where a task's files are not there.
    """

    parameters: int
    memory: float
    operations: float | None


def needs_of(cell: Cell, config_of: ConfigOf) -> Needs | None:
    """What `plan_run` says of a cell; None of one that trains nothing.

    Fine-tuning has no padding here, a token for every four bytes of its files, and for questions
    rows of the full length: an estimate, good to a factor of about two.

    Raises:
        UserError: the tool refuses its flags.
    """
    if cell.kind == PRETRAINING:
        return _pretraining(config_of(cell.tool, cell.arguments), model_of(cell))
    if cell.kind == FINE_TUNING:
        return _fine_tuning(config_of(cell.tool, cell.arguments), model_of(cell))
    return None


def model_of(cell: Cell) -> BertConfig:
    """The configuration of the model that a cell trains."""
    holders = [one for one in (cell, *cell.needs) if "bert_config.json" in one.files]
    return BertConfig.from_google(json.loads(holders[0].files["bert_config.json"]))


def _pretraining(config: RunPretrainingConfig, model: BertConfig) -> Needs:
    config.check_model(model)
    plans = []
    for phase in config.phases():
        training = replace(
            config.training,
            num_train_steps=phase.num_train_steps,
            train_batch_size=phase.train_batch_size,
        )
        lengths = (phase.max_seq_length, phase.max_predictions_per_seq)
        model.check_length(phase.max_seq_length)
        plans.append(plan_run(model, training, *lengths, on_cpu=True))
    memory = max(sum(plan.memory.values()) for plan in plans)
    return Needs(plans[0].parameters, memory, sum(plan.flops for plan in plans))


def _fine_tuning(config: FineTuningConfig, model: BertConfig) -> Needs:
    length = config.max_seq_length
    model.check_length(length)
    one_step = replace(config.training, num_train_steps=1)
    plan = plan_run(model, one_step, length, 0, on_cpu=True)
    tokens = training_tokens(config)
    a_token = plan.flops / plan.tokens
    operations = None if tokens is None else tokens * a_token * config.num_train_epochs
    return Needs(plan.parameters, sum(plan.memory.values()), operations)


def training_tokens(config: FineTuningConfig) -> float | None:
    """About how many tokens an epoch of a task has; None where its files are not there."""
    try:
        if isinstance(config, RunSquadConfig):
            questions = _count(config.train_file, b'"question"')
            return float(questions * config.max_seq_length)
        return sum(_size(path) for path in _files(config)) / _BYTES_OF_A_TOKEN
    except (UserError, OSError):
        return None


def _files(config: Any) -> list[Path]:
    if isinstance(config, RunClassifierConfig):
        task = task_of(config)
        return list(task.files(task.train_split))
    if isinstance(config, RunNerConfig):
        files = config.files
        return [files.train_file or Path(files.data_dir or "") / "train.txt"]
    return [config.file("train") or Path("train.csv")]  # SWAG's


def _size(path: Path) -> int:
    """The bytes of a file, unpacked."""
    return _count(path, b"")


def _count(path: Path | None, words: bytes) -> int:
    """How often words stand in a file, plain or packed; b"" counts its bytes."""
    if path is None:
        raise UserError("the task names no file to train on.")
    found, rest = 0, b""
    with open_unpacked(str(path)) as file:
        while block := file.read(_READ_AT_ONCE):
            text = rest + block
            found += text.count(words) if words else len(block)
            rest = text[-(len(words) - 1) :] if len(words) > 1 else b""
    return found


Share = tuple[int, ...]
"""The numbers of some of the processors."""

_SECONDS_BETWEEN_CALLS_TO_END = 0.5


def _shares(count: int) -> list[Share]:
    """This process' processors in so many parts; where there are fewer, several use one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < count:
        return [(cores[number % len(cores)],) for number in range(count)]
    bounds = [len(cores) * number // count for number in range(count + 1)]
    return [tuple(cores[a:b]) for a, b in pairwise(bounds)]


_RESULT, _CALLS, _LOG = "result.json", "calls.txt", "log.txt"


class Programs(Protocol):
    """The tools, as a study uses them."""

    def config_of(self, tool: str, flags: Sequence[str]) -> Any:
        """Gives the config of a tool's job, without starting it.

        Raises:
            UserError: the tool refuses its flags.
        """
        ...

    def run(self, tool: str, flags: Sequence[str], log: Path, cores: frozenset[int] | None) -> int:
        """Runs a tool to its end; gives its exit code.

        Args:
            tool: its name.
            flags: its flags.
            log: the file that gets what it prints.
            cores: the processors that it may use; None: those of this process.
        """
        ...


@dataclass(frozen=True)
class Result:
    """What came of a cell.

    Attributes:
        figures: those of its `eval_results.txt`; none of data.
        seconds: that its calls took, but for calls that were killed.
        calls: how often it was started; above 1 it was stopped or killed in between.
    """

    figures: dict[str, float]
    seconds: float
    calls: int


def stored_result(cell: Cell) -> Result | None:
    """The result of a finished cell; None without one."""
    try:
        values = json.loads((cell.folder / _RESULT).read_text(encoding="utf-8"))
        return Result(dict(values["figures"]), float(values["seconds"]), int(values["calls"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_cell(
    cell: Cell, programs: Programs, keep_models: bool, cores: frozenset[int] | None = None
) -> Result:
    """Runs a cell, or goes on with one that was stopped, and keeps its result.

    Its own run resumes as any other: by the same command in the same folder.

    Args:
        cell: all that it needs is finished.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
        cores: the processors that it may use; None: those of this process.

    Raises:
        UserError: the tool failed.
    """
    make_folder(cell.folder)
    for name, text in cell.files.items():
        with open_whole(cell.folder / name) as file:
            file.write(text)
    start = time.monotonic()
    _note(cell, "started")
    code = programs.run(cell.tool, cell.arguments, cell.folder / _LOG, cores)
    _note(cell, f"ended {time.monotonic() - start:.1f}")
    if code != 0:
        raise UserError(
            f"{cell.folder / _LOG}: the run {cell.name} failed, and its last line was: "
            f"{_last_line(cell.folder / _LOG)} Mend it; the same command continues there."
        )
    seconds, calls = _calls(cell)
    result = Result(_figures(cell), seconds, calls)
    values = {"command": cell.command, "seeds": list(cell.seeds), **vars(result)}
    with open_whole(cell.folder / _RESULT) as file:
        file.write(json.dumps(values, indent=1) + "\n")
    tidy(cell, keep_models)
    return result


def tidy(cell: Cell, keep_models: bool) -> None:
    """Removes what a finished run only needs to resume, and a score's model."""
    if cell.kind not in (PRETRAINING, FINE_TUNING) or (cell.kind == FINE_TUNING and keep_models):
        return
    run = RunDirectory.open(cell.folder)
    leftovers = [run.checkpoints, run.best_checkpoint]
    for folder in leftovers + ([run.model] if cell.kind == FINE_TUNING else []):
        shutil.rmtree(folder, ignore_errors=True)


def _figures(cell: Cell) -> dict[str, float]:
    """The figures of `eval_results.txt`.

    Raises:
        UserError: a run that scores left none, because it was asked to stop.
    """
    path = cell.folder / "eval_results.txt"
    if not path.exists():
        if cell.kind in (PRETRAINING, FINE_TUNING):
            raise UserError(
                f"{cell.folder}: the run {cell.name} was stopped before its end; the same command "
                "continues there."
            )
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def _note(cell: Cell, words: str) -> None:
    with (cell.folder / _CALLS).open("a", encoding="utf-8") as file:
        file.write(f"{words}\n")


def _calls(cell: Cell) -> tuple[float, int]:
    lines = (cell.folder / _CALLS).read_text(encoding="utf-8").split("\n")
    seconds = [float(line.split()[1]) for line in lines if line.startswith("ended ")]
    return sum(seconds), lines.count("started")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "(nothing).")


def run_cells(
    cells: Sequence[Cell],
    programs: Programs,
    keep_models: bool,
    at_once: int,
    started: Callable[[Cell], None],
) -> Iterator[tuple[Cell, Result]]:
    """Runs cells, each after those of them that it needs.

    Several cells at once share the processors: each has its own part of them, and a cell that no
    other can run beside has all. Small models gain by it, since a second thread helps a small
    matrix little. Where a cell fails, those that run beside it are finished first.

    Args:
        cells: in an order in which each stands behind those that it needs.
        programs: the tools.
        keep_models: whether the models of fine-tuning stay.
        at_once: how many run at once at most.
        started: called with each cell when it starts.

    Yields:
        Each cell with its result, as soon as it is there.

    Raises:
        UserError: a tool failed.
    """
    if at_once == 1:
        for cell in cells:
            started(cell)
            yield cell, run_cell(cell, programs, keep_models)
        return
    with ThreadPoolExecutor(at_once) as threads:
        queue = _Queue(list(cells), _shares(at_once))
        try:
            while queue.waiting or queue.running:
                for cell, shares in queue.next_cells():
                    started(cell)
                    cores = frozenset(chain.from_iterable(shares))
                    future = threads.submit(run_cell, cell, programs, keep_models, cores)
                    queue.running[future] = cell, shares
                for done in wait(queue.running, return_when=FIRST_COMPLETED).done:
                    yield queue.finish(done), done.result()
        except (KeyboardInterrupt, GeneratorExit):  # the cells' own processes ignore Ctrl-C
            _end_all(list(queue.running))
            raise


@dataclass
class _Queue:
    """Which cells wait, which run, and which parts of the processors are free."""

    waiting: list[Cell]
    free: list[Share]
    running: dict[Future[Result], tuple[Cell, list[Share]]] = field(default_factory=dict)

    def next_cells(self) -> list[tuple[Cell, list[Share]]]:
        """The cells that can start now, with their processors."""
        unfinished = {cell.name for cell in self.waiting}
        unfinished |= {cell.name for cell, _ in self.running.values()}
        ready = [x for x in self.waiting if not unfinished & {one.name for one in x.needs}]
        # What others wait for goes first: a long pre-training that starts last would end alone.
        needed = {one.name for cell in self.waiting for one in cell.needs}
        ready.sort(key=lambda cell: cell.name not in needed)
        chosen = ready[: len(self.free)]
        for cell in chosen:
            self.waiting.remove(cell)
        if len(chosen) == 1 and not self.running:
            whole, self.free = [*self.free], []
            return [(chosen[0], whole)]
        return [(cell, [self.free.pop(0)]) for cell in chosen]

    def finish(self, future: Future[Result]) -> Cell:
        """Takes a cell off; its processors are free again."""
        cell, shares = self.running.pop(future)
        self.free += shares
        return cell


def _end_all(running: list[Future[Result]]) -> None:
    """Ends the processes of cells; one that is only about to start, too."""
    while wait(running, timeout=_SECONDS_BETWEEN_CALLS_TO_END).not_done:
        for process in multiprocessing.active_children():
            process.terminate()
