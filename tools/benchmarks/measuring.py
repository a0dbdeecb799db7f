"""Parts that the benchmarks share: turns, child processes, tables, and the text that they read."""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import text_lines
from keras_bert_impl.progress import Progress

Figure = TypeVar("Figure")


class LeftOutError(Exception):
    """A contender cannot take part; the message says why."""


def in_turns(
    ways: Mapping[str, Callable[[], Figure]], rounds: int = 1, label: str = "measure"
) -> dict[str, list[Figure]]:
    """The measurements of each way, round by round.

    They take turns, so that a slow minute of the machine does not hit one of them alone. A way that
    fails with `LeftOutError` is left out from then on, and stderr says why.
    """
    figures: dict[str, list[Figure]] = {name: [] for name in ways}
    taking_part = dict(ways)
    progress = Progress(label, rounds * len(ways), "turns")
    for _ in range(rounds):
        for name, measure in [*taking_part.items()]:
            try:
                figures[name].append(measure())
            except LeftOutError as error:
                del taking_part[name]
                sys.stderr.write(f"{name} is left out: {error}\n")
            progress.advance(note=name)
    progress.close()
    return {name: found for name, found in figures.items() if found}


class Child:
    """A process that measures a case (as JSON), by the `--child` flag of a benchmark's module."""

    def __init__(
        self, module: str, case: Mapping[str, Any], *flags: str, **environment: str
    ) -> None:
        # A file, because a pipe that is not read would stop a process that logs much.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, f"--child={json.dumps(case)}", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        )

    def answer(self) -> dict[str, Any]:
        """Waits for its end; gives the JSON of the last line that it prints."""
        output, _ = self._process.communicate()
        if self._process.returncode:
            raise LeftOutError(self._reason())
        return json.loads(output.splitlines()[-1])

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Asks a process that answers lines of JSON on its standard input with others."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise LeftOutError(self._reason())
        return json.loads(answer)

    def end(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.communicate()

    def _reason(self) -> str:
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or ["it gave no reason"])[-1]


def in_child(
    module: str, case: Mapping[str, Any], *flags: str, **environment: str
) -> dict[str, Any]:
    """Measures a case in a process of its own; the arguments are those of `Child`."""
    return Child(module, case, *flags, **environment).answer()


def seconds_of(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a call takes, by the wall or by the processor (`time.process_time`)."""
    start = clock()
    call()
    return clock() - start


def spread(values: Sequence[float]) -> float:
    """How far figures lie apart, in parts of their median."""
    return (max(values) - min(values)) / statistics.median(values)


def peak_bytes() -> int:
    """The most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def machine() -> str:
    """The processors that this process may use, and Python's version."""
    model, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    return f"{len(cores())} x {model}, Python {platform.python_version()}"


def show_json(row: Mapping[str, Any]) -> None:
    """Prints a row for programs."""
    print(json.dumps(row), flush=True)


class PrintedTable:
    """A table for people, printed row by row.

    Args:
        columns: their heads, and how their cells are formatted; the first one's are texts.

    Example:
        >>> table = PrintedTable({"way": "", "steps/s": ",.1f", "to pad": ".2f"}, first=8)
        way        steps/s    to pad
        >>> table.row("pad", 1234.5)
        pad        1,234.5
    """

    def __init__(self, columns: Mapping[str, str], first: int = 24) -> None:
        head, *others = columns
        self._first, self._widths = first, [max(8, len(other)) for other in others]
        self._formats = [columns[other] for other in others]
        self._show(head, others)

    def row(self, name: str, *cells: Any) -> None:
        """Prints a row; where a cell is None, and after the last one, it is empty."""
        formatted = zip(cells, self._formats, strict=False)
        self._show(name, ["" if cell is None else f"{cell:{how}}" for cell, how in formatted])

    def _show(self, name: str, texts: Iterable[str]) -> None:
        cells = (f"{text:>{width}}" for text, width in zip(texts, self._widths, strict=False))
        print("  ".join([f"{name:{self._first}}", *cells]).rstrip(), flush=True)


def spread_texts(path: str, count: int) -> list[str]:
    """So many texts, one a line, spread over a file."""
    lines = [line for line in text_lines(path) if line.strip()]
    if len(lines) < count:
        raise UserError(f"{path}: has {len(lines)} texts, and {count} are asked for.")
    return spread_over(lines, count)


def spread_over(items: Sequence[str], count: int) -> list[str]:
    """So many of the items, at like distances."""
    return [items[number * len(items) // count] for number in range(count)]
