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


class _Handler:
    """The reaction of the process to SIGTERM inside `on_sigterm`.

    The process' own table of handlers says which signal is the present one: a list kept next to it
    would be wrong as soon as somebody else sets the handler, and the next SIGTERM would kill.
    """

    def __init__(self, stop: StopSignal) -> None:
        self.stop = stop

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.stop.request()


def stop_requested() -> bool:
    """Whether SIGTERM came inside of the present `on_sigterm`; in any thread."""
    handler = signal.getsignal(signal.SIGTERM)
    return isinstance(handler, _Handler) and handler.stop.requested


@contextlib.contextmanager
def on_sigterm(stop: StopSignal | None = None) -> Iterator[StopSignal]:
    """Inside the block, SIGTERM (a preemption) asks for a stop instead of killing the process.

    A block inside of another one has the same signal: what was asked for before it counts.

    Args:
        stop: what is asked, outside of other blocks; None: a new signal.
    """
    before = signal.getsignal(signal.SIGTERM)
    if isinstance(before, _Handler):
        yield before.stop
        return
    stop = stop or StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return
    handler = _Handler(stop)
    signal.signal(signal.SIGTERM, handler)
    try:
        yield stop
    finally:
        # A block that ends late must not take the handler of a later one away.
        if signal.getsignal(signal.SIGTERM) is handler:
            signal.signal(signal.SIGTERM, before)
