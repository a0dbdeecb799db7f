"""Progress on standard error: rate and time left."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

_Part = TypeVar("_Part")


def format_duration(seconds: float) -> str:
    """Writes a duration as a person would read it.

    Example:
        >>> format_duration(7.2), format_duration(75), format_duration(3 * 3600 + 120)
        ('7s', '1m15s', '3h02m')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def format_count(number: float) -> str:
    """Writes a count with three digits and a unit.

    Example:
        >>> format_count(950), format_count(12_345), format_count(3_200_000)
        ('950', '12.3k', '3.20M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{unit}"
    return f"{number:.0f}" if number >= 10 else f"{number:.3g}"


def format_bytes(count: float) -> str:
    """Writes a size as a person would.

    Example:
        >>> format_bytes(1_321_000_000), format_bytes(2_200_000), format_bytes(71_000)
        ('1.32 GB', '2.2 MB', '71 kB')
    """
    if count >= 1e9:
        return f"{count / 1e9:.2f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


class Progress:
    """Says now and then how far a job is.

    On a terminal one line is rewritten five times a second; elsewhere (a log file) a plain line
    appears every ten seconds. Jobs shorter than that print only their closing line. Rate and time
    left are those of the units that were measured; the closing line is of the whole job.

    Example:
        >>> import io
        >>> log = io.StringIO()
        >>> ticks = iter([0.0, 10.0, 20.0])
        >>> progress = Progress("read", 30, "lines", stream=log, clock=lambda: next(ticks))
        >>> _ = progress.advance(10)
        >>> progress.close()
        >>> print(log.getvalue(), end="")
        read: 10 of 30 lines (33 %), 1 lines/s, 20s left
        read: 10 of 30 lines in 20s (0.5 lines/s)
    """

    def __init__(
        self,
        label: str,
        total: float | None,
        unit: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._pause = 0.2 if self._terminal else 10.0
        self._clock = clock
        self._start = self._last = self._told = clock()
        self._done = self._done_at_start = 0.0
        self._measured = self._seconds = 0.0

    def over(
        self, parts: Iterable[_Part], units: Callable[[_Part], float] = lambda _: 1
    ) -> Iterator[_Part]:
        """Passes parts on; each is done when the next one is asked for, and all at their end."""
        for part in parts:
            yield part
            self.advance(units(part))
        self.close()

    def resume_from(self, done: float) -> None:
        """Counts `done` units as finished earlier: they show, but do not enter the rate."""
        self._done = self._done_at_start = done

    def advance(self, units: float = 1, note: str = "", *, compiled: bool = False) -> bool:
        """Counts `units` more as done; says whether the line was shown now.

        Units in whose time a program was compiled are not measured.
        """
        self._done, now = self._done + units, self._clock()
        if not compiled:
            self._measured += units
            self._seconds += now - self._told
        self._told = now
        shown = now - self._last >= self._pause
        if shown:
            self._last = now
            self._write(self._line() + (f", {note}" if note else ""))
        return shown

    def close(self) -> None:
        """Writes the closing line."""
        now = self._clock()
        done = self._done - self._done_at_start
        line = f"{self._label}: {self._so_far()} {self._unit}"
        if self._done_at_start:
            line += f", {format_count(done)} of them"
        line += f" in {format_duration(now - self._start)} ({self._rate(done, now - self._start)})"
        self._write(line, last=True)

    def _so_far(self) -> str:
        done = format_count(self._done)
        return f"{done} of {format_count(self._total)}" if self._total else done

    def _line(self) -> str:
        line = f"{self._label}: {self._so_far()} {self._unit}"
        if self._total:
            line += f" ({min(1.0, self._done / self._total):.0%})".replace("%", " %")
        if self._measured:
            line += f", {self._rate(self._measured, self._seconds)}"
        if self._total and self._measured:
            left = max(0.0, self._total - self._done)
            line += f", {format_duration(left * self._seconds / self._measured)} left"
        return line

    def _rate(self, units: float, seconds: float) -> str:
        # Clocks have a resolution: units may be done in no time.
        return f"{format_count(units / max(seconds, 1e-9))} {self._unit}/s"

    def _write(self, line: str, *, last: bool = False) -> None:
        # Back to the line's beginning, and what stood there is erased.
        whole = f"\r\x1b[K{line}" + ("\n" if last else "") if self._terminal else f"{line}\n"
        with contextlib.suppress(OSError):  # the terminal may be closed; the work goes on
            self._stream.write(whole)
            self._stream.flush()
