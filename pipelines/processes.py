"""Worker processes that end with the process that started them, and whose death is a sentence."""

import contextlib
import importlib
import multiprocessing
import multiprocessing.context
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from keras_bert_impl.errors import UserError

_SECONDS_BETWEEN_LOOKS = 0.5


@contextlib.contextmanager
def worker_pool(
    num_workers: int,
    context: multiprocessing.context.BaseContext,
    remedy: str,
    preload: str | None = None,
) -> Iterator[ProcessPoolExecutor]:
    """Gives a pool of processes; they end with the block, and soon after this process is killed.

    Where the block is left by Ctrl-C, they end at once; files that they were writing stay under
    their hidden names, as when they are killed.

    Args:
        num_workers: how many processes there are at most.
        context: how they are started.
        remedy: what the user can do where a process is killed; the end of a sentence.
        preload: module that all workers need, loaded before their first task.

    Raises:
        UserError: a process was killed (by the system when memory ran out, say).

    Example:
        >>> context = multiprocessing.get_context("spawn")
        >>> with worker_pool(1, context, "run the same command again") as pool:
        ...     pool.submit(abs, -3).result()
        3
    """
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(
        num_workers,
        mp_context=context,
        initializer=_start_worker,
        initargs=(os.getpid(), preload),
    )
    try:
        yield pool
    except BrokenProcessPool as error:
        raise UserError(
            f"A worker process was killed, perhaps for want of memory; {remedy}."
        ) from error
    except (KeyboardInterrupt, GeneratorExit):  # workers do not heed Ctrl-C themselves
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(starter: int, preload: str | None) -> None:
    """Loads what is needed, and ends this worker soon after the process that started the job."""

    def watch() -> None:
        while _lives(starter):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    # Ctrl-C reaches workers too: the starter ends them, without a traceback of each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
    if preload:
        importlib.import_module(preload)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # no such folder on this system
    # Killed, but not yet buried: in a container perhaps nobody ever does that.
    return status.rpartition(")")[2].split()[0] not in "ZX"
