"""The mechanism of many runs: each is done once, and a call that was stopped is continued.

A run works in a folder of its own and in a process of its own. A process of its own because
TensorFlow keeps what a run leaves behind: memory of the device, compiled steps, logical devices and
XLA's settings, which can be made only once. So the tenth run starts as the first one does, and one
that is killed takes no other with it. The process that starts them never loads TensorFlow, and so
holds no memory of the device.

The folders alone say what is left to do: a run is finished when its `result.json` is there and is
of the same inputs. A run that was stopped continues from its own checkpoints.
"""

import contextlib
import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain, pairwise
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, open_whole, remove, without_links
from keras_bert_impl.json_files import read_json_object, typed_entries
from keras_bert_impl.training.stop_signal import StopSignal, on_stop, stop_requested
from pipelines.processes import worker_pool

_LOGGER = logging.getLogger(__name__)
_SECONDS_BETWEEN_CALLS_TO_END = 0.5

RESULT = "result.json"

Cores = frozenset[int] | None
"""The numbers of the processors that a run may use; None: those of this process."""

Values = Mapping[str, Any]
"""The content of a result file, as JSON values."""


FIGURES = dict[str, Real]
"""The type of figures in a result file: some may be NaN."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, eq=False)
class Run:
    """One run, done or not.

    Attributes:
        name: unique among the runs; what the log calls it.
        folder: where it works; `do` writes `result.json` there.
        work: does it, most often by `in_own_process`; gives what the result file shall say, None
            where the run was stopped before its end.
        of: what the result follows from, as JSON values; a result of something else is none. None
            where the folder's name says it.
        needs: the names of the runs whose results it reads.
        tidy: removes what only an unfinished run needs.

    Example:
        >>> import tempfile
        >>> run = Run("sum", Path(tempfile.mkdtemp()), lambda cores: {"sum": 3}, of=[1, 2])
        >>> run.kept(), run.do(), run.kept()
        (None, {'sum': 3}, {'of': [1, 2], 'sum': 3})
    """

    name: str
    folder: Path
    work: Callable[[Cores], Values | None]
    of: Any = None
    needs: frozenset[str] = frozenset()
    tidy: Callable[[], None] = _nothing

    def kept(self, **types: Any) -> Values | None:
        """The content of the result file; None without a whole one of the same inputs.

        Args:
            types: what it must say to be whole, see `json_files.typed`.
        """
        try:
            values = read_json_object(self.folder / RESULT)
            if self.of is not None and values.get("of") != self.of:
                return None
            whole = types.keys() <= values.keys()
            return typed_entries(values, types, str(self.folder / RESULT)) if whole else None
        except UserError:
            return None

    def do(self, cores: Cores = None) -> Values | None:
        """Runs it, or continues it, and keeps its result; None where it was stopped.

        Raises:
            UserError: it failed, or the folder cannot be written.
        """
        for path in make_folder(without_links(self.folder)).iterdir():
            without_links(path)  # a tool would take it for what its user names
        values = self.work(cores)
        if values is None:
            return None
        remove(self.folder / RESULT)  # what is damaged may be a folder
        with open_whole(self.folder / RESULT) as file:
            # The two forms of the file are older than this module: only one ends its last line.
            if self.of is None:
                file.write(json.dumps(values, indent=1) + "\n")
            else:
                json.dump({"of": self.of, **values}, file, indent=1)
        self.tidy()  # not before: a run without its result needs its checkpoints
        return values


_Given = TypeVar("_Given")


def in_own_process(function: Callable[..., _Given], *arguments: Any, remedy: str) -> _Given:
    """Calls a function in a process of its own, which ends with this one.

    Inside of `stop_on_signal` SIGTERM and Ctrl-C reach it as SIGTERM, whether they came before or
    after the start.

    Args:
        function: a function of a module (it is sent by its name).
        arguments: what can be pickled.
        remedy: what the user can do where the process is killed; the end of the message.

    Raises:
        UserError: from the function, or the process was killed.
    """
    with worker_pool(1, multiprocessing.get_context("spawn"), remedy) as pool:
        started = pool.submit(function, *arguments)
        if stop_requested():  # perhaps before there was a process to pass it on to
            _terminate_children()
        return started.result()


class _PassedOn(StopSignal):
    """A stop that reaches the runs' processes, which save and end."""

    def request(self, number: int = signal.SIGTERM) -> None:
        _terminate_children()
        super().request(number)


def stop_on_signal() -> contextlib.AbstractContextManager[StopSignal]:
    """Inside the block, SIGTERM and Ctrl-C reach the runs' processes, and no other run is started.

    A block inside of another one has the same signal: what was asked for before it counts.
    """
    return on_stop(_PassedOn())


def _terminate_children(at_once: bool = False) -> None:
    for process in multiprocessing.active_children():
        process.kill() if at_once else process.terminate()


def do_runs(
    runs: Sequence[Run],
    stop: StopSignal,
    *,
    at_once: int = 1,
    among: Sequence[Run] | None = None,
) -> Iterator[tuple[Run, Values | None]]:
    """Does runs, each after those of them that it needs.

    Several runs at once share the processors: each has its own part of them, and a run that no
    other can run next to has all. Small models gain by it, since a second thread helps a small
    matrix little. Where a run fails, those that run next to it are finished first.

    Args:
        runs: in an order in which each stands behind those that it needs.
        stop: from `stop_on_signal`; once requested, no other run is started.
        at_once: how many run at once at most.
        among: all runs, finished ones included, for the numbers in the log; None: `runs`.

    Yields:
        Each run with its result, as soon as it is there; None where it was stopped before its end.
        After such a one no other is started.

    Raises:
        UserError: a run failed.
    """
    numbers = {run.name: number for number, run in enumerate(among or runs, start=1)}

    def tell(run: Run) -> None:
        _LOGGER.info("run %d of %d: %s", numbers[run.name], len(numbers), run.name)

    if at_once > 1:
        yield from _side_by_side(runs, stop, at_once, tell)
        return
    for run in runs:
        if stop.requested:
            return
        tell(run)
        values = _do(run, stop, None)
        if values is None:
            stop.note()  # its process alone may have been asked to stop
        yield run, values
        if values is None:
            return


def _do(run: Run, stop: StopSignal, cores: Cores) -> Values | None:
    try:
        return run.do(cores)
    except UserError:
        if stop.requested:  # its process ended before it could save anything
            return None
        raise


def _side_by_side(
    runs: Sequence[Run], stop: StopSignal, at_once: int, tell: Callable[[Run], None]
) -> Iterator[tuple[Run, Values | None]]:
    with ThreadPoolExecutor(at_once) as threads:
        queue = _Queue(list(runs), _shares(at_once))
        try:
            while True:
                if stop.requested:
                    queue.waiting.clear()
                for run, shares in queue.next_runs():
                    tell(run)
                    cores = frozenset(chain.from_iterable(shares))
                    queue.running[threads.submit(_do, run, stop, cores)] = run, shares
                if not queue.running:
                    return
                for done in wait(queue.running, return_when=FIRST_COMPLETED).done:
                    run, values = queue.finish(done), done.result()
                    if values is None:  # what waits for it must not start
                        stop.note()
                        queue.waiting.clear()
                    yield run, values
        except (KeyboardInterrupt, GeneratorExit):  # the runs' own processes ignore Ctrl-C
            _end_all(list(queue.running))
            raise


_Share = tuple[int, ...]  # the numbers of some of the processors


def _shares(count: int) -> list[_Share]:
    """This process' processors in so many parts; where there are fewer, several use one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < count:
        return [(cores[number % len(cores)],) for number in range(count)]
    bounds = [len(cores) * number // count for number in range(count + 1)]
    return [tuple(cores[a:b]) for a, b in pairwise(bounds)]


@dataclass
class _Queue:
    """The runs that wait, those that run, and the parts of the processors that are free."""

    waiting: list[Run]
    free: list[_Share]
    running: dict[Future[Values | None], tuple[Run, list[_Share]]] = field(default_factory=dict)

    def next_runs(self) -> list[tuple[Run, list[_Share]]]:
        """The runs that can start now, with their processors."""
        unfinished = {run.name for run in self.waiting}
        unfinished |= {run.name for run, _ in self.running.values()}
        ready = [run for run in self.waiting if not unfinished & run.needs]
        # What others wait for goes first: a long pre-training that starts last would end alone.
        needed = frozenset[str]().union(*(run.needs for run in self.waiting))
        ready.sort(key=lambda run: run.name not in needed)
        chosen = ready[: len(self.free)]
        for run in chosen:
            self.waiting.remove(run)
        if len(chosen) == 1 and not self.running:
            whole, self.free = [*self.free], []
            return [(chosen[0], whole)]
        return [(run, [self.free.pop(0)]) for run in chosen]

    def finish(self, future: Future[Values | None]) -> Run:
        """Takes a run off; its processors are free again."""
        run, shares = self.running.pop(future)
        self.free += shares
        return run


def _end_all(running: list[Future[Values | None]]) -> None:
    """Ends the processes of runs; one that is only about to start, too."""
    while wait(running, timeout=_SECONDS_BETWEEN_CALLS_TO_END).not_done:
        _terminate_children(at_once=True)
