"""Runs cases, each in a process that is forked from this one, which has the imports.

A case is made of the number alone: its kind and number seed the draws that choose the file, the
mutator and what reads it. Time and memory of its process are bounded from outside.
"""

import contextlib
import dataclasses
import functools
import gc
import importlib
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError
from tests.fuzz import corpus
from tests.fuzz.mutators import spoil
from tests.fuzz.outcomes import (
    HANG,
    MEMORY,
    SENTENCE,
    SUCCESS,
    TRACEBACK,
    End,
    Judged,
    judge,
    left_behind,
)

ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 0.01
_MOST_TIMES = 30  # the limit by the clock, however long it waits for a core

Reader = str | Callable[[], object]
"""A tool with its words, or a function: all work in the case's folder."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of file or folder that somebody may give us.

    Attributes:
        make: fills a folder with a valid one.
        spoiled: groups of mutators by the pattern of the files that they spoil.
        readers: what reads it; each one works on the valid one.
        weight: how many cases it gets, compared with others.
        seconds: the processor time that a case may take, and how long it may wait.
        megabytes: the memory that a case may take besides what is imported.
    """

    name: str
    make: Callable[[Path], None]
    spoiled: dict[str, str]
    readers: tuple[Reader, ...]
    weight: int = 10
    seconds: int = 40
    megabytes: int = 500


@dataclasses.dataclass
class Case:
    """One spoiled thing and its reader.

    A negative number spoils nothing and counts readers from the end; `kept` is what a case of the
    corpus says.
    """

    kind: Kind
    number: int
    folder: Path = Path()
    spoiled: str = ""
    words: str = ""
    reader: Reader = ""
    kept: dict[str, Any] | None = None
    judged: Judged = dataclasses.field(default_factory=lambda: Judged(SUCCESS))
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind.name}:{self.number}"

    def told(self) -> str:
        """The case in one line."""
        return f"{self.spoiled}: {self.words} → {self.reader_name}"

    @property
    def reader_name(self) -> str:
        """What reads it, in words."""
        return name_of(self.reader)


def name_of(reader: Reader) -> str:
    """A reader in words."""
    return reader.__name__ if callable(reader) else reader


class NoSeedError(Exception):
    """A valid file could not be made."""


class Seeds:
    """The valid folders, each made once, by a process of its own.

    Args:
        folder: where they are kept; those that it holds already are taken.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, kind: Kind) -> Path:
        """The folder of a kind's seed."""
        final = self._folder / kind.make.__name__
        if not final.exists():
            self._make(kind, final)
        return final

    def _make(self, kind, folder):
        folder.mkdir(parents=True)
        said = folder.with_name(f"{folder.name}.log")
        _, status = os.waitpid(_fork(functools.partial(kind.make, folder), folder, said), 0)
        if status:
            shutil.rmtree(folder)
            raise NoSeedError(f"no seed for {kind.name}:\n{said.read_text()[-3000:]}")
        said.unlink()

    def copy(self, kind: Kind, folder: Path) -> None:
        """Copies a kind's seed."""
        shutil.copytree(self.of(kind), folder, symlinks=True)


def import_all() -> None:
    """Imports what the readers need, so that their processes need not; uses nothing of it."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # a name that nobody knows is looked for on the hub
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from tools.__main__ import tool_names

    # With its text kernels, TensorFlow looks for other libraries at each start otherwise.
    for name in ("tensorflow", "tensorflow_text", "keras", "scipy.stats", "sklearn.metrics"):
        importlib.import_module(name)
    for name in tool_names():
        importlib.import_module(f"tools.{name}")
    for path in sorted((*ROOT.glob("pipelines/**/*.py"), *ROOT.glob("keras_bert_impl/**/*.py"))):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if not name.endswith(("__main__", "__init__", ".beam", "quiet_beam")):
            with contextlib.suppress(ImportError, UserError):  # extras that are not here
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what a collection in a process touches is copied for it


class Runner:
    """Runs cases, a few at a time.

    Args:
        folder: where the cases stand; those that end well are removed.
        seed: of all draws.
        seeds: the valid folders.
        workers: how many run at once.
    """

    def __init__(self, folder: Path, seed: int, seeds: Seeds, workers: int = 2) -> None:
        self._folder, self._seed, self._seeds, self._workers = folder, seed, seeds, workers

    def run(self, cases: list[Case]) -> Iterator[Case]:
        """Gives each case when it has ended."""
        waiting, running = cases[::-1], list[_Running]()
        try:
            while waiting or running:
                while waiting and len(running) < self._workers:
                    running.append(self._start(waiting.pop()))
                for one in [one for one in running if one.ended()]:
                    running.remove(one)
                    yield one.finish()
                time.sleep(_LOOK_SECONDS)
        finally:
            for one in running:
                one.kill()

    def made(self, case: Case) -> Case:
        """Copies the case's seed, and spoils the copy."""
        case.folder = self._folder / case.name.replace(":", "-")
        if case.folder.exists():
            shutil.rmtree(case.folder)
        self._seeds.copy(case.kind, case.folder)
        if case.number < 0:  # as it is, for one reader after the other
            case.reader = case.kind.readers[case.number]
        elif case.kept is not None:
            case.spoiled, case.words = case.kept["spoiled"], case.kept["words"]
            names = {name_of(reader): reader for reader in case.kind.readers}
            case.reader = names.get(case.kept["reader"], case.kind.readers[0])
            corpus.put(case.kept, case.folder / case.spoiled)
        else:
            rng = random.Random(f"{self._seed} {case.name}")
            case.reader = rng.choice(case.kind.readers)
            path, groups = rng.choice(_files_of(case.kind, case.folder))
            case.spoiled = path.relative_to(case.folder).as_posix()
            case.words = spoil(rng, path, groups)
        return case

    def clear(self, case: Case) -> None:
        """Removes a case's folder."""
        shutil.rmtree(case.folder, ignore_errors=True)
        case.folder.with_name(f"{case.folder.name}.err").unlink(missing_ok=True)

    def _start(self, case):
        try:
            return _Running(self.made(case))
        except NoSeedError as error:
            return _NotBegun(case, str(error))


def cases_of_corpus(kinds: Mapping[str, Kind]) -> list[Case]:
    """The cases that once failed."""
    return [
        Case(kinds[values["kind"]], number, kept=values)
        for number, values in enumerate(corpus.kept().values())
        if values["kind"] in kinds
    ]


def _files_of(kind, folder):
    found = {}
    for pattern, groups in kind.spoiled.items():
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                found.setdefault(path, groups)
    if not found:
        raise RuntimeError(f"{kind.name}: {list(kind.spoiled)} match nothing in {folder}")
    return list(found.items())


class _NotBegun(NamedTuple):
    """Stands for the process of a case whose seed could not be made."""

    case: Case
    why: str

    def ended(self):
        return True

    def finish(self):
        self.case.judged = Judged(TRACEBACK, self.why)
        return self.case

    def kill(self):
        pass


class _Running:
    """The process of a case."""

    def __init__(self, case: Case) -> None:
        self._case, self._limit = case, ""
        self._before = set(case.folder.rglob("*"))
        self._said = case.folder.with_name(f"{case.folder.name}.err")
        self._started = time.monotonic()
        self._pid = _fork(functools.partial(_read, case.reader), case.folder, self._said)
        self._base = self._peak = _own_memory(os.getpid())
        self._status: int | None = None

    def ended(self) -> bool:
        """Whether the process has ended; it is killed where it goes beyond its bounds."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = status
            return True
        kind = self._case.kind
        self._peak = max(self._peak, _own_memory(self._pid))
        if hangs(
            time.monotonic() - self._started,
            kind.seconds,
            functools.partial(_times_of, self._pid),
        ):
            self._limit = HANG
        elif (self._peak - self._base) >> 20 > kind.megabytes:
            self._limit = MEMORY
        if self._limit:
            self.kill()
            return True
        return False

    def kill(self) -> None:
        """Ends the process and those that it started."""
        _kill_group(self._pid)
        with contextlib.suppress(ChildProcessError):
            _, self._status = os.waitpid(self._pid, 0)

    def finish(self) -> Case:
        """The case with its outcome; its folder is kept where that is bad."""
        case = self._case
        _kill_group(self._pid)  # what it has left behind
        case.seconds = time.monotonic() - self._started
        case.megabytes = (self._peak - self._base) / (1 << 20)
        code = os.waitstatus_to_exitcode(self._status or 0)
        with self._said.open("rb") as file:
            said = file.read(1 << 20).decode(errors="replace")
        case.judged = self._judge(End(code, said, self._limit))
        return case

    def _judge(self, end):
        case = self._case
        path = Path(case.spoiled)
        places = [*path.parts, path.stem, *(one.name for one in case.folder.rglob("*.*"))]
        judged = judge(end, case.folder, places)
        if judged.outcome not in (SUCCESS, SENTENCE):
            return judged
        return left_behind(case.folder, self._before, end.code != 0) or judged


def hangs(elapsed: float, limit: float, times: Callable[[], tuple[float, float]]) -> bool:
    """Whether a process will not end, which one that waits for a core of a busy machine will."""
    if elapsed < limit:
        return False
    used, queued = times()
    return used > limit or elapsed - used - queued > limit or elapsed > limit * _MOST_TIMES


def _times_of(group):
    """The seconds that a group of processes has computed, and those that it waited for a core."""
    used = queued = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                used += sum(map(int, fields[11:15]))  # of children that have ended, too
                threads = [path.read_text() for path in process.glob("task/*/schedstat")]
                queued += sum(int(text.split()[1]) for text in threads)
    return used / os.sysconf("SC_CLK_TCK"), queued / 1e9


def _own_memory(pid):
    """The bytes that a process has to itself, files that it maps aside."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.split("RssAnon:")[1].split()[0]) << 10
    return 0


def _kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _fork(work, folder, said):
    """Does some work in a forked process that works in a folder; gives its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # both do it: either may be the first
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        written = os.open(said or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.environ["PWD"] = str(folder)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = int(work() or 0)
    except SystemExit as end:
        code = int(end.code is not None) if not isinstance(end.code, int) else end.code
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _read(reader):
    """Reads as a tool does: the exit code, with a sentence on standard error."""
    if not callable(reader):
        tool, *words = reader.split()
        return importlib.import_module(f"tools.{tool}").main(words)
    try:
        reader()
    except UserError as error:
        for sentence in error.sentences:
            sys.stderr.write(f"Error: {' '.join(sentence.split())}\n")
        return 1
    return 0
