"""Doing a piece of work for each of many blocks on several processes, results in order."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TypeVar

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


def in_order(
    function: Callable[[_Work], _Result], work: Iterable[_Work], num_workers: int | None = None
) -> Iterator[_Result]:
    """Gives `function(item)` for each item, in the items' order whatever the number of workers.

    At most three items a worker are under way, so that memory does not grow with the work.

    Args:
        function: a function of a module (it is sent to the workers by name).
        work: the items; read as they are needed.
        num_workers: how many processes work; None: as many as there are processors; 1: this one.

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
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        try:
            for item in work:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 3 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
