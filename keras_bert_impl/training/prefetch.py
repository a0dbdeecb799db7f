"""Making the next batches while the present step computes."""

import collections
import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_END = object()


@contextlib.contextmanager
def prefetched(items: Iterable[Any], ahead: int = 2) -> Iterator[Iterator[Any]]:
    """Runs an iterator in a thread, at most `ahead` items before its reader.

    An error in the iterator is raised in the reader; leaving the block ends the thread.

    Args:
        items: what to make; only the thread touches it.
        ahead: how many items may wait.

    Example:
        >>> with prefetched(range(3)) as numbers:
        ...     list(numbers)
        [0, 1, 2]
    """
    source = iter(items)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as thread:
        waiting: collections.deque[Future] = collections.deque(
            thread.submit(next, source, _END) for _ in range(ahead)
        )

        def read() -> Iterator[Any]:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, source, _END))
                yield item

        try:
            yield read()
        finally:
            thread.shutdown(cancel_futures=True)
