"""Doing a piece of work for each of many blocks on several processes, results in order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from pipelines.processes import worker_pool

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")

_REMEDY = "run the same command again with a smaller --num_workers"


def in_order(
    function: Callable[[_Work], _Result], work: Iterable[_Work], num_workers: int | None = None
) -> Iterator[_Result]:
    """Gives `function(item)` for each item, in the items' order whatever the number of workers.

    At most three items a worker are under way, so that memory does not grow with the work. The
    workers end with the iteration, and soon after this process is killed.

    Args:
        function: a function of a module (it is sent to the workers by name).
        work: the items; read as they are needed.
        num_workers: how many processes work; None: as many as there are processors; 1: this one.

    Raises:
        UserError: from the work, or a worker was killed (by the system when memory ran out, say).

    Example:
        >>> list(in_order(abs, [-1, -2], num_workers=1))
        [1, 2]
    """
    count = num_workers or os.cpu_count() or 1
    if count == 1:
        yield from map(function, work)
        return
    # Fresh processes: a fork of a process with threads (TensorFlow's) can hang.
    context = multiprocessing.get_context("spawn")
    waiting: deque[Future[_Result]] = deque()
    with worker_pool(count, context, _REMEDY) as pool:
        for item in work:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 3 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
