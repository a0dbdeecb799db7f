"""Tasks in processes: the same results for any number of them."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from pipelines.processes import worker_pool

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD = 2  # tasks handed out for each worker, so that none waits for the next
_REMEDY = "run the same command again to continue, with a smaller --num_workers if it happens again"


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    num_workers: int,
    preload: str | None = None,
) -> Iterator[tuple[int, Result]]:
    """Runs a function on every task, in processes of their own.

    The processes end with the iteration, so what they loaded does not stay in memory; they also end
    when this process is killed. A script that calls this must be importable without side effects
    (`if __name__ == "__main__":`), as for every use of `multiprocessing`.

    Args:
        function: importable by name; takes a task, gives a result that can be pickled.
        tasks: what to work on.
        num_workers: processes at most; 0 works in this process.
        preload: module that all workers need, loaded before their first task; several workers are
            forked from one process that has loaded it, where the system can fork.

    Yields:
        (number of the task, result) in the order in which tasks finish.

    Raises:
        UserError: from a task, or a worker was killed (by the system when memory ran out, say).

    Example:
        >>> sorted(run_tasks(abs, [-1, 2, -3], num_workers=2))
        [(0, 1), (1, 2), (2, 3)]
    """
    if num_workers == 0 or not tasks:
        yield from ((number, function(task)) for number, task in enumerate(tasks))
        return
    context = _context(preload if num_workers > 1 else None)
    waiting = iter(enumerate(tasks))
    running: dict[Future[Result], int] = {}
    with worker_pool(min(num_workers, len(tasks)), context, _REMEDY, preload) as pool:
        while True:
            while len(running) < _TASKS_AHEAD * num_workers and (job := next(waiting, None)):
                running[pool.submit(function, job[1])] = job[0]
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()


def _context(preload: str | None) -> multiprocessing.context.BaseContext:
    if preload and "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([preload])
        return context
    return multiprocessing.get_context("spawn")
