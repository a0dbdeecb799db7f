"""How a stopped process ends: it saves where it can, and elsewhere an exception ends it.

Inside of `stops_raise` the signals of `STOPS` raise an exception, so that files under way are
removed and workers end. Inside of `on_stop` they set a flag, and the work saves and ends. After
either the second Ctrl-C ends the process at once.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

_LOGGER = logging.getLogger(__name__)

TERMINAL_STOPS = (signal.SIGINT, signal.SIGHUP)
"""What all processes of a terminal get: at Ctrl-C, and when the terminal is closed."""

STOPS = (signal.SIGTERM, *TERMINAL_STOPS)
"""What stops a process in good order, unless it ignored it at its start (`nohup`, `&`)."""

EXIT_SIGNAL = 128
"""Added to the number of the signal that stopped a process, as shells do."""


class TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP came where nothing can be saved: all ends as after Ctrl-C, workers too.

    Its argument is the number of the signal, SIGTERM without one.
    """


class StopRequestedError(Exception):
    """Raised inside `Stops.interrupting` when the run shall stop."""


class Stops:
    """The reaction of a process to a stop: an exception, or a flag where the work `saves`.

    Example:
        >>> stop = Stops(saves=True)
        >>> stop.requested
        False
        >>> stop(signal.SIGTERM)
        >>> stop.requested
        True
    """

    def __init__(self, saves: bool = False) -> None:
        self.number: int | None = None  # of the first signal, SIGTERM where another process got it
        self.saves = saves
        self._interrupts = False

    @property
    def requested(self) -> bool:
        """Whether the work shall save and stop."""
        return self.number is not None

    def __call__(self, number: int, _frame: FrameType | None = None) -> None:
        """Handles a signal."""
        if self.requested:
            if number == signal.SIGINT:
                end_at_once(number)
            return
        self.number = int(number)
        if not self.saves:
            raise KeyboardInterrupt if number == signal.SIGINT else TerminatedError
        is_key = number == signal.SIGINT
        again = "; press it again to end at once" if is_key else ""
        name = "Ctrl-C" if is_key else signal.Signals(number).name
        _LOGGER.warning("%s: saving and stopping%s.", name, again)
        if self._interrupts:
            raise StopRequestedError

    def note(self) -> None:
        """Notes that the run stops because another process was asked to."""
        if self.number is None:
            self.number = int(signal.SIGTERM)

    @contextlib.contextmanager
    def interrupting(self, allowed: bool = True) -> Iterator[None]:
        """Inside the block a stop does not wait: it raises `StopRequestedError`.

        For work that can be done again (an evaluation takes minutes, a preemption waits seconds).
        """
        self._interrupts = allowed
        try:
            if allowed and self.requested:
                raise StopRequestedError
            yield
        finally:
            self._interrupts = False


def end_at_once(number: int) -> None:
    """Ends this process and its workers without any more ado; files stay as after a kill."""
    if processes := sys.modules.get("multiprocessing"):
        for process in processes.active_children():
            process.kill()
    with contextlib.suppress(OSError):  # the terminal may be closed
        os.write(2, b"\nEnded at once.\n")
    os._exit(EXIT_SIGNAL + number)


@contextlib.contextmanager
def heard_by(
    handler: Callable[[int, FrameType | None], None], numbers: Iterable[signal.Signals]
) -> Iterator[None]:
    """Inside the block one handler gets these signals."""
    before = {one: signal.signal(one, handler) for one in numbers}
    try:
        yield
    finally:
        for one, earlier in before.items():
            # A block that ends late must not take the handler of a later one away.
            if signal.getsignal(one) is handler:
                signal.signal(one, earlier)


@contextlib.contextmanager
def stops_raise() -> Iterator[Stops]:
    """Inside the block Ctrl-C raises `KeyboardInterrupt`, another stop `TerminatedError`, once.

    A handler of another owner stays. A block inside another one changes nothing. Whatever exception
    leaves the block after a signal came is the stop: foreign code may have made another one of it.
    """
    present = signal.getsignal(signal.SIGTERM)
    if isinstance(present, Stops):
        yield present
        return
    stops = Stops()
    if threading.current_thread() is not threading.main_thread() or present is not signal.SIG_DFL:
        yield stops
        return
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    heeded = [one for one in STOPS if signal.getsignal(one) in defaults]
    with heard_by(stops, heeded), _raised_again(stops):
        yield stops


@contextlib.contextmanager
def _raised_again(stops: Stops) -> Iterator[None]:
    """Inside the block a stop that Python drops comes again.

    Python drops what is raised in `__del__` and in callbacks of the garbage collection.
    """
    before, again = sys.unraisablehook, list[threading.Timer]()

    def hear(dropped: "sys.UnraisableHookArgs") -> None:
        if stops.number is None or not isinstance(dropped.exc_value, KeyboardInterrupt):
            before(dropped)
            return
        number, stops.number = stops.number, None
        again.append(threading.Timer(0.05, os.kill, [os.getpid(), number]))  # after the callback
        again[-1].start()

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()  # all is done: nothing is left to stop


_stopped_by: int | None = None  # of the process, as its table of handlers is


def take_stop() -> int | None:
    """The signal that stopped an `on_stop` since the last call; None where nothing was stopped."""
    global _stopped_by
    number, _stopped_by = _stopped_by, None
    return number


@contextlib.contextmanager
def on_stop() -> Iterator[Stops]:
    """Inside the block a stop sets a flag, and the work saves and ends.

    A block inside of another one has the same flag: what was asked for before it counts.
    """
    global _stopped_by
    present = signal.getsignal(signal.SIGTERM)
    if isinstance(present, Stops) and present.saves:
        yield present
        return
    stops = Stops(saves=True)
    if threading.current_thread() is not threading.main_thread():
        yield stops  # only the main thread may handle signals
        return
    heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
    try:
        with heard_by(stops, heeded):
            yield stops
    finally:
        if stops.requested:
            _stopped_by = stops.number


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Inside the block a stop waits for its end: what begins there is never left unknown.

    Example:
        >>> with stops_raise():
        ...     try:
        ...         with held_back():
        ...             signal.raise_signal(signal.SIGTERM)
        ...             print("started")
        ...     except TerminatedError:
        ...         print("stopped")
        started
        stopped
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    heard = list[int]()
    handlers = {one: handler for one in STOPS if callable(handler := signal.getsignal(one))}
    try:
        with heard_by(lambda number, _frame: heard.append(number), handlers):
            yield
    finally:
        for number in heard:
            handlers[signal.Signals(number)](number, None)


@contextlib.contextmanager
def kept_so_far(sentence: str) -> Iterator[None]:
    """A stop that ends the block is reported with this sentence: what is kept, how to go on.

    Example:
        >>> try:
        ...     with kept_so_far("two of three cakes are baked, and the same command bakes on"):
        ...         raise KeyboardInterrupt
        ... except KeyboardInterrupt as stop:
        ...     what_is_kept(stop)
        'two of three cakes are baked, and the same command bakes on'
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(sentence)
        raise


def signal_of(error: BaseException) -> int | None:
    """The signal that an exception most likely stands for; None for any other exception.

    Example:
        >>> signal_of(KeyboardInterrupt()), signal_of(TerminatedError()), signal_of(ValueError())
        (2, 15, None)
    """
    if isinstance(error, TerminatedError):
        return int(error.args[0] if error.args else signal.SIGTERM)
    return int(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else None


def what_is_kept(stop: BaseException) -> str | None:
    """The innermost sentence of `kept_so_far`, or None."""
    return next(iter(getattr(stop, "__notes__", ())), None)
