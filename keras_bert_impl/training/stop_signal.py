"""Ending a run in good order when the machine is taken away."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopSignal:
    """Says whether the run shall save and stop.

    Example:
        >>> stop = StopSignal()
        >>> stop.requested
        False
        >>> stop.request()
        >>> stop.requested
        True
    """

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        """Asks the run to stop after the present step."""
        self.requested = True


@contextlib.contextmanager
def on_sigterm() -> Iterator[StopSignal]:
    """Inside the block, SIGTERM (a preemption) asks for a stop instead of killing the process."""
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)
