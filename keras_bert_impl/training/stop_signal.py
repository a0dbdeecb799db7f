"""Ending a run in good order when the machine is taken away."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequestedError(Exception):
    """Raised inside `StopSignal.interrupting` when the run shall stop."""


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
        self._interrupts = False

    def request(self) -> None:
        """Asks the run to stop after the present step.

        Raises:
            StopRequestedError: inside of `interrupting`.
        """
        self.requested = True
        if self._interrupts:
            raise StopRequestedError

    @contextlib.contextmanager
    def interrupting(self, allowed: bool = True) -> Iterator[None]:
        """Inside the block a request does not wait: it raises `StopRequestedError`.

        For work that can be done again (an evaluation takes minutes, a preemption waits seconds).

        Args:
            allowed: False changes nothing.
        """
        self._interrupts = allowed
        try:
            if allowed and self.requested:
                raise StopRequestedError
            yield
        finally:
            self._interrupts = False


_active: list[StopSignal] = []  # the one that SIGTERM speaks to, if any


@contextlib.contextmanager
def on_sigterm() -> Iterator[StopSignal]:
    """Inside the block, SIGTERM (a preemption) asks for a stop instead of killing the process.

    A block inside of another one has the same signal: what was asked for before it counts.
    """
    if _active:
        yield _active[0]
        return
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.request()

    before = signal.signal(signal.SIGTERM, handle)
    _active.append(stop)
    try:
        yield stop
    finally:
        _active.clear()
        signal.signal(signal.SIGTERM, before)
