"""Runs functions in worker processes that never outlive the process that started them.

A worker of Python's `ProcessPoolExecutor` is left alone where its parent is killed: it keeps its
memory and holds locks that the next run needs. `worker_pool` gives workers that watch their parent.
On it stands `in_order`, a map over an endless stream of work that keeps its order.
"""

import contextlib
import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from keras_bert_impl.backend import usable_cores
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import lives
from keras_bert_impl.interrupts import TERMINAL_STOPS, held_back

_SECONDS_BETWEEN_CHECKS = 0.5


@contextlib.contextmanager
def worker_pool(num_workers: int, preload: str | None = None) -> Iterator[ProcessPoolExecutor]:
    """Gives a pool of processes; they end with the block, or soon after this process is killed.

    A stop ends them at once; files that they were writing stay under their hidden names, as after a
    kill. Where a process is killed, by the system when memory ran out, say, a `UserError` says so.
    The workers load the module `preload` before their first task.

    Example:
        >>> with worker_pool(1) as pool:
        ...     pool.submit(abs, -3).result()
        3
    """
    others, context = {*multiprocessing.active_children()}, _context(num_workers, preload)
    with _terminal_blocked():
        pool = _Pool(
            num_workers, context, initializer=_start_worker, initargs=(os.getpid(), preload)
        )
    try:
        yield pool
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process was killed, perhaps for want of memory; run the same command again "
            "with a smaller `num_workers`."
        ) from error
    except (KeyboardInterrupt, GeneratorExit):  # workers themselves ignore a terminal's stops
        for process in {*multiprocessing.active_children()} - others:
            process.kill()  # at once, even where SIGTERM lets it save first
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _context(num_workers: int, preload: str | None) -> BaseContext:
    """Several workers are forked from one process that has loaded a module, where that goes."""
    if (
        not preload
        or num_workers == 1
        or "forkserver" not in multiprocessing.get_all_start_methods()
    ):
        # Fresh processes: a fork of a process with threads (TensorFlow's) can hang.
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    return context


class _Pool(ProcessPoolExecutor):
    """Starts its processes so that a stop finds them as they should be.

    A process that starts would print a traceback at Ctrl-C, which reaches all of a terminal's
    processes: it is blocked there until `_start_worker` ignores it. And this process is not
    interrupted between the start of another one and its note of that.
    """

    def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
        """Hands a task out, perhaps to a process that starts for it."""
        with held_back(), _terminal_blocked():
            return super().submit(*arguments, **named)


@contextlib.contextmanager
def _terminal_blocked() -> Iterator[None]:
    """Processes that start inside the block get no stop of the terminal before they ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_STOPS)
    try:
        resource_tracker.ensure_running()  # such a process; and it unblocks Ctrl-C
        signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_STOPS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(starter: int, preload: str | None) -> None:
    """Prepares a worker: it watches its starter, ignores its terminal and loads what it needs."""

    def watch() -> None:
        while lives(starter):  # its pipes say it too late where others that it forked hold them
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        os._exit(1)

    # Ctrl-C reaches workers too, and each would print a traceback; the parent ends them instead.
    for one in TERMINAL_STOPS:
        signal.signal(one, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_STOPS)
    threading.Thread(target=watch, daemon=True).start()
    if preload:
        importlib.import_module(preload)


_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


def in_order(
    function: Callable[[_Work], _Result],
    work: Iterable[_Work],
    num_workers: int | None = None,
    preload: str | None = None,
) -> Iterator[_Result]:
    """Gives `function(item)` for each item, in the items' order whatever the number of workers.

    At most three items for each worker are in flight, so that memory does not grow with the work.
    The function is one of a module (it is sent by name). By default there are as many workers as
    cores may be used; 0 is this process, and so is 1 unless something is to be loaded, which goes
    with the worker.

    Example:
        >>> list(in_order(abs, [-1, -2], num_workers=1))
        [1, 2]
    """
    count = usable_cores() if num_workers is None else num_workers
    if count == 0 or (count == 1 and not preload):
        yield from map(function, work)
        return
    waiting: deque[Future[_Result]] = deque()
    with worker_pool(count, preload) as pool:
        for item in work:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 3 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
