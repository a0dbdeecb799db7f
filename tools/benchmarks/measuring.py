"""Parts that the benchmarks share: turns, child processes, reports, and the text that they read."""

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

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

    def __init__(self, module: str, case: Mapping[str, Any], *flags: str) -> None:
        # A file, because a pipe that is not read would stop a process that logs much.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, f"--child={json.dumps(case)}", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )

    def answer(self) -> dict[str, Any]:
        """Waits for its end; gives the JSON of the last line that it prints."""
        output, _ = self._process.communicate()
        if self._process.returncode:
            raise LeftOutError(last_line(self._errors))
        return json.loads(output.splitlines()[-1])

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Asks a process that answers lines of JSON on its standard input with others."""
        assert self._process.stdin
        assert self._process.stdout
        answer = ""
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise LeftOutError(last_line(self._errors))
        return json.loads(answer)

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate()


def last_line(log: IO[str]) -> str:
    """The last line of a log, which is why its process ended."""
    log.seek(0)
    return (log.read().strip().splitlines() or ["it gave no reason"])[-1].strip()


def in_child(module: str, case: Mapping[str, Any], *flags: str) -> dict[str, Any]:
    """Measures a case in a process of its own; the arguments are those of `Child`."""
    return Child(module, case, *flags).answer()


def seconds_of(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a call takes, by the wall or by the processor (`time.process_time`)."""
    start = clock()
    call()
    return clock() - start


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


def report(found: Mapping[str, Sequence[Mapping[str, float]]], **about: Any) -> None:
    """Prints the medians of each contender's figures as a table, and all rounds as JSON lines.

    Example:
        >>> report({"pad": [{"steps/s": 1234.5}, {"steps/s": 0.5}, {"steps/s": 12.25}]}, task="x")
                                     steps/s
        pad                            12.25
        {"who": "pad", "task": "x", "steps/s": [1234.5, 0.5, 12.25]}
    """
    heads = list(dict.fromkeys(name for rounds in found.values() for name in rounds[0]))
    print(f"{'':26}", *(f"{name:>10}" for name in heads))
    for who, rounds in found.items():
        medians = [statistics.median([one[name] for one in rounds]) for name in heads]
        cells = (f"{x:,.0f}" if x >= 1000 else f"{x:.4g}" for x in medians)
        print(
            f"{who:26}",
            *(f"{cell:>{max(10, len(of))}}" for cell, of in zip(cells, heads, strict=True)),
        )
    for who, rounds in found.items():
        figures = {name: [one[name] for one in rounds] for name in heads}
        print(json.dumps({"who": who, **about, **figures}), flush=True)


def spread_texts(path: str, count: int) -> list[str]:
    """So many texts, one a line, spread over a file."""
    lines = [line for line in text_lines(path) if line.strip()]
    if len(lines) < count:
        raise UserError(f"{path}: has {len(lines)} texts, and {count} are asked for.")
    return spread_over(lines, count)


def spread_over(items: Sequence[str], count: int) -> list[str]:
    """So many of the items, at like distances."""
    return [items[number * len(items) // count] for number in range(count)]
