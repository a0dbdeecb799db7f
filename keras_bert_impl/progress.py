"""Progress on standard error: rate and time left."""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO


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


@dataclass
class _Compiling:
    """What was done in calls whose time went into compiling."""

    seconds: float = 0.0
    units: float = 0.0
    work: float = 0.0


class Progress:
    """Says now and then how far a job is.

    On a terminal one line is rewritten five times a second; elsewhere (a log file) a plain line
    appears every `seconds_between_lines`. Jobs shorter than that print only their closing line. The
    time left follows the `work` that the first so many units are, where some take longer.

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
        seconds_between_lines: float = 10.0,
        work: Callable[[float], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._unit = label, total, unit
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._pause = 0.2 if self._terminal else seconds_between_lines
        self._work = work or (lambda units: units)
        self._clock = clock
        self._start = self._last = self._now = clock()
        self._done = self._done_at_start = 0.0
        self._compiling = _Compiling()

    def resume_from(self, done: float) -> None:
        """Counts `done` units as finished earlier: they show, but do not enter the rate."""
        self._done = self._done_at_start = done

    def advance(self, units: float = 1, note: str = "", *, compiled: bool = False) -> bool:
        """Counts `units` more as done; says whether the line was shown now."""
        before, self._done = self._done, self._done + units
        now = self._clock()
        if compiled:
            self._compiling.seconds += now - self._now
            self._compiling.units += units
            self._compiling.work += self._work(self._done) - self._work(before)
        self._now = now
        shown = now - self._last >= self._pause
        if shown:
            self._last = now
            self._write(self._line(now - self._start) + (f", {note}" if note else ""))
        return shown

    def close(self) -> None:
        """Writes the closing line."""
        seconds = self._clock() - self._start
        done = self._done - self._done_at_start
        line = f"{self._label}: {self._so_far()} {self._unit}"
        if self._done_at_start:
            line += f", {format_count(done)} of them"
        line += f" in {format_duration(seconds)}"
        if self._compiling.seconds:
            line += f", {format_duration(self._compiling.seconds)} of it compiling"
        rate = self._rate(seconds)
        self._write(line + (f" ({rate})" if rate else ""), last=True)

    def _so_far(self) -> str:
        done = format_count(self._done)
        return f"{done} of {format_count(self._total)}" if self._total else done

    def _line(self, seconds: float) -> str:
        line = f"{self._label}: {self._so_far()} {self._unit}"
        if self._total:
            line += f" ({min(1.0, self._done / self._total):.0%})".replace("%", " %")
        parts = [line, self._rate(seconds), self._left(seconds), self._spent_compiling(seconds)]
        return ", ".join(part for part in parts if part)

    def _spent_compiling(self, seconds: float) -> str:
        """Why it takes so long, where most of the time went into compiling."""
        compiling = self._compiling.seconds
        return f"{format_duration(compiling)} spent compiling" if compiling > seconds / 2 else ""

    def _rate(self, seconds: float) -> str:
        """Units a second without compiling; nothing as long as all was compiling."""
        done = self._done - self._done_at_start - self._compiling.units
        if self._compiling.units and not done:
            return ""
        # Clocks have a resolution: the first units may be done in no time.
        rate = done / max(seconds - self._compiling.seconds, 1e-9)
        return f"{format_count(rate)} {self._unit}/s"

    def _left(self, seconds: float) -> str:
        """The time left, as fast as it went without compiling."""
        if not self._total:
            return ""
        total, done, before = map(self._work, (self._total, self._done, self._done_at_start))
        measured = done - before - self._compiling.work
        if measured <= 0:
            return ""
        left = (total - done) * (seconds - self._compiling.seconds) / measured
        return f"{format_duration(max(0.0, left))} left"

    def _write(self, line: str, *, last: bool = False) -> None:
        # Back to the line's beginning, and what stood there is erased.
        whole = f"\r\x1b[K{line}" + ("\n" if last else "") if self._terminal else f"{line}\n"
        with contextlib.suppress(OSError):  # the terminal may be closed; the work goes on
            self._stream.write(whole)
            self._stream.flush()
