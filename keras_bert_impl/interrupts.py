"""A process that is stopped where nothing can be saved ends soon, with its workers, in a sentence.

Inside of `stops_raise` the signals of `STOPS` raise an exception, so that files under way are
removed and workers end. Training, which can save, takes them over with
`training.stop_signal.on_stop`.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

TERMINAL_STOPS = (signal.SIGINT, signal.SIGHUP)
"""What all processes of a terminal get: at Ctrl-C, and when the terminal is closed."""

STOPS = (signal.SIGTERM, *TERMINAL_STOPS)
"""What stops a process in good order, unless it ignored it at its start (`nohup`, `&`)."""

EXIT_SIGNAL = 128
"""Added to the number of the signal that stopped a process, as shells do."""

_SECONDS_TO_TRY_AGAIN = 0.05


class TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP came where nothing can be saved: all ends as after Ctrl-C, workers too."""


class Stops:
    """Raises at the first stop; what comes after it changes nothing.

    Attributes:
        number: the signal that came; None before.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._swallowed = False
        self.second = _SecondStop()

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Handles a signal."""
        if self.number is not None and not self._swallowed:
            return
        self.number, self._swallowed = number, False
        raise KeyboardInterrupt if number == signal.SIGINT else TerminatedError

    def unraisable(self, unraisable: Any, otherwise: Any) -> None:
        """Tries again where the exception could not be raised: in a destructor or a callback."""
        number = self.number
        if number is None or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            otherwise(unraisable)
            return

        main = threading.get_ident()  # handlers and what they raise are in the main thread

        def again() -> None:
            self._swallowed, self.second.repeated = True, True
            signal.pthread_kill(main, number)  # wakes it where it waits

        threading.Timer(_SECONDS_TO_TRY_AGAIN, again).start()


class _SecondStop:
    """Ends the process at Ctrl-C after a stop, though the main thread computes and hears nothing.

    Python runs handlers in the main thread between two of its own steps, which may be a minute of
    compiling; but signals are written to a file descriptor at once, and a thread reads it.
    """

    def __init__(self) -> None:
        self.repeated = False  # the next signal is one that came before

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Inside the block there is such a thread."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.close(writing)

    def _watch(self, reading: int) -> None:
        stopped = False
        while numbers := os.read(reading, 64):
            for number in (one for one in numbers if one in STOPS):
                if self.repeated:
                    self.repeated = False
                elif stopped and number == signal.SIGINT:
                    end_at_once(number)
                stopped = True
        os.close(reading)


def end_at_once(number: int) -> None:
    """Ends this process and its workers without any more ado; files stay as after a kill."""
    if processes := sys.modules.get("multiprocessing"):
        for process in processes.active_children():
            process.kill()
    with contextlib.suppress(OSError):  # the terminal may be closed
        os.write(2, b"\nEnded at once.\n")
    os._exit(EXIT_SIGNAL + number)


@contextlib.contextmanager
def stops_raise() -> Iterator[Stops]:
    """Inside the block Ctrl-C raises `KeyboardInterrupt`, another stop `TerminatedError`, once.

    Ctrl-C after either ends the process at once. What a process ignores it goes on ignoring, and a
    handler of somebody else's stays. A block inside of another one is the same.

    Yields:
        Says which signal came. Whatever exception leaves the block then is the stop: on its way
        through foreign code it may have become another one.
    """
    present = signal.getsignal(signal.SIGTERM)
    if isinstance(present, Stops):
        yield present
        return
    stops = Stops()
    defaults = dict.fromkeys(STOPS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    if threading.current_thread() is not threading.main_thread() or present is not signal.SIG_DFL:
        yield stops
        return
    heeded = {one: was for one, was in defaults.items() if signal.getsignal(one) is was}
    hook = sys.unraisablehook
    with stops.second.heeded():
        sys.unraisablehook = lambda unraisable: stops.unraisable(unraisable, hook)
        for one in heeded:
            signal.signal(one, stops)
        try:
            yield stops
        finally:
            for one, was in heeded.items():
                signal.signal(one, was)
            sys.unraisablehook = hook


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

    def hear(number: int, _frame: FrameType | None) -> None:
        heard.append(number)

    handlers = {one: handler for one in STOPS if callable(handler := signal.getsignal(one))}
    for one in handlers:
        signal.signal(one, hear)
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        for number in heard:
            handlers[signal.Signals(number)](number, None)


@contextlib.contextmanager
def kept_so_far(sentence: str) -> Iterator[None]:
    """A stop that ends the block is told with this sentence: what is kept, and how to go on.

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
        return int(signal.SIGTERM)
    return int(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else None


def what_is_kept(stop: BaseException) -> str | None:
    """The innermost sentence of `kept_so_far`, or None."""
    return next(iter(getattr(stop, "__notes__", ())), None)
