"""Ending a run in good order: its machine or terminal goes, or somebody presses Ctrl-C."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from keras_bert_impl.interrupts import STOPS

_LOGGER = logging.getLogger(__name__)


class StopRequestedError(Exception):
    """Raised inside `StopSignal.interrupting` when the run shall stop."""


class StopSignal:
    """Says whether the run shall save and stop.

    Attributes:
        number: the signal that asked for it, SIGTERM where another process was asked; None before.

    Example:
        >>> stop = StopSignal()
        >>> stop.requested
        False
        >>> stop.request()
        >>> stop.requested
        True
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._interrupts = False

    @property
    def requested(self) -> bool:
        """Whether it shall."""
        return self.number is not None

    def request(self, number: int = signal.SIGTERM) -> None:
        """Asks the run to stop after the present step."""
        self.note(number)
        if self._interrupts:
            raise StopRequestedError

    def note(self, number: int = signal.SIGTERM) -> None:
        """Notes why the run stops (the first reason only); SIGTERM: another process was asked."""
        if self.number is None:
            self.number = int(number)

    @contextlib.contextmanager
    def interrupting(self, allowed: bool = True) -> Iterator[None]:
        """Inside the block a request does not wait: it raises `StopRequestedError`.

        For work that can be done again (an evaluation takes minutes, a preemption waits seconds).
        """
        self._interrupts = allowed
        try:
            if allowed and self.requested:
                raise StopRequestedError
            yield
        finally:
            self._interrupts = False


class _Handler:
    """The reaction of the process to a stop inside `on_stop`.

    The process' own table of handlers says which signal is the present one: a list kept next to it
    would be wrong as soon as somebody else sets the handler, and the next SIGTERM would kill.
    """

    def __init__(self, stop: StopSignal) -> None:
        self.stop = stop

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self.stop.requested:
                raise KeyboardInterrupt
            _LOGGER.warning("Ctrl-C: saving and stopping; press it again to end at once.")
        elif not self.stop.requested:
            _LOGGER.warning("%s: saving and stopping.", signal.Signals(number).name)
        self.stop.request(number)


_stopped_by: int | None = None  # of the process, as its table of handlers is


def take_stop() -> int | None:
    """The signal that stopped an `on_stop` since the last call; None where nothing was stopped."""
    global _stopped_by
    number, _stopped_by = _stopped_by, None
    return number


def stop_requested() -> bool:
    """Whether a stop was asked for inside of the present `on_stop`; in any thread."""
    handler = signal.getsignal(signal.SIGTERM)
    return isinstance(handler, _Handler) and handler.stop.requested


@contextlib.contextmanager
def on_stop(stop: StopSignal | None = None) -> Iterator[StopSignal]:
    """Inside the block, `interrupts.STOPS` ask for a stop instead of ending the process.

    A second Ctrl-C raises KeyboardInterrupt, as the first one does outside. What a process ignores
    it goes on ignoring. A block inside of another one has the same signal: what was asked for
    before it counts.

    Args:
        stop: what is asked, outside of other blocks; None: a new signal.
    """
    global _stopped_by
    before = signal.getsignal(signal.SIGTERM)
    if isinstance(before, _Handler):
        yield before.stop
        return
    stop = stop or StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may handle signals
        return
    handler = _Handler(stop)
    heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
    others = {one: signal.signal(one, handler) for one in heeded}
    try:
        yield stop
    finally:
        for one, other in others.items():
            # A block that ends late must not take the handler of a later one away.
            if signal.getsignal(one) is handler:
                signal.signal(one, other)
        if stop.requested:
            _stopped_by = stop.number
