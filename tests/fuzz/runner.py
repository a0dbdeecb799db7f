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
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError
from tests.fuzz import corpus, readers
from tests.fuzz.mutators import SPECIAL, other_flag, spoil
from tests.fuzz.outcomes import HANG, MEMORY, SUCCESS, TRACEBACK, WRONG, End, Judged, Traces, judge

ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 0.01
_FED = b"the dog runs\n\na cat\n"
_WHOLE_SECONDS = 30  # what the start of a whole process may take besides
_MOST_TIMES = 30  # the limit by the clock, however long it waits for a core

Reader = str | list[str] | Callable[[], object]
"""A tool with its words, or a function: all work in the case's folder."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of file or folder that somebody may give us.

    Attributes:
        name: what it is called.
        make: fills a folder with a valid one.
        spoiled: groups of mutators by the pattern of the files that they spoil; where there are
            none, flags of the readers are changed.
        readers: what reads it; each one works on the valid one.
        weight: how many cases it gets, compared with others.
        needed: patterns of files without which a reader cannot succeed.
        streams: patterns of files that may be read from a pipe, which is then fed.
        outputs: patterns of results that a failure does not leave.
        made_again: patterns of files of ours that are made again, whatever stands there.
        check: says what is wrong with a success, in the case's folder; "" where nothing is.
        up_to_training: whether a tool's run is only looked at, and trains nothing.
        in_place: whether it is made anew for every case, because it knows where it lies.
        seconds: the processor time that a case may take, and how long it may wait.
        megabytes: the memory that a case may take besides what is imported.
    """

    name: str
    make: Callable[[Path], None]
    spoiled: dict[str, str]
    readers: tuple[Reader, ...]
    weight: int = 10
    needed: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("out*",)
    made_again: tuple[str, ...] = ()
    check: Callable[[], str] = lambda: ""
    up_to_training: bool = False
    in_place: bool = False
    seconds: int = 40
    megabytes: int = 500


@dataclasses.dataclass
class Case:
    """One spoiled thing and its reader.

    Attributes:
        kind: of what.
        number: seeds all draws; a negative one spoils nothing and counts readers from the end.
        whole: whether its reader is started as users start it, not forked.
        folder: where it stands.
        spoiled: the file's name, or the flag's.
        words: what was done to it.
        reader: what reads it.
        command: the tool and its words where they are what was changed.
        kept: what a case of the corpus says; it is put where a number would draw.
        fatal: whether nothing of the file can be read.
        judged: the outcome.
        seconds: how long it took.
        megabytes: the memory that it took.
    """

    kind: Kind
    number: int
    whole: bool = False
    folder: Path = Path()
    spoiled: str = ""
    words: str = ""
    reader: Reader = ""
    command: list[str] | None = None
    kept: dict[str, Any] | None = None
    fatal: bool = False
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
    return reader.__name__ if callable(reader) else " ".join(words_of(reader))


def words_of(reader: str | list[str]) -> list[str]:
    """The words of a command."""
    return reader.split() if isinstance(reader, str) else reader


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
        if kind.in_place:
            self._make(kind, folder)
            return
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
        if not name.endswith(("__main__", "__init__", ".beam")):
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
            return self._looked_at(case)
        if case.kept is not None:
            return self._as_kept(case, case.kept)
        rng = random.Random(f"{self._seed} {case.name}")
        case.reader = rng.choice(case.kind.readers)
        case.whole = case.whole and isinstance(case.reader, str)
        if not case.kind.spoiled:
            return self._with_other_flag(rng, case)
        files = _files_of(case.kind, case.folder)
        path, groups = rng.choice(files)
        case.spoiled = path.relative_to(case.folder).as_posix()
        group, case.words = spoil(rng, path, groups)
        case.fatal = group == SPECIAL and self._is_needed(case, path)
        return case

    def _is_needed(self, case, path):
        """Whether the reader cannot do without a file; blanks may be a text."""
        needed = any(path.match(pattern) for pattern in case.kind.needed)
        named = callable(case.reader) or any(
            part in case.reader for part in Path(case.spoiled).parts
        )
        return needed and named and not (path.is_file() and path.stat().st_size)

    def _as_kept(self, case, values):
        case.spoiled, case.words = values["spoiled"], values["words"]
        if "command" in values:
            case.reader = case.command = values["command"]
            return self._looked_at(case)
        names = {name_of(reader): reader for reader in case.kind.readers}
        case.reader = names.get(values["reader"], case.kind.readers[0])
        corpus.put(values, corpus.place(case.folder, case.spoiled))
        return case

    def _with_other_flag(self, rng, case):
        tool, *words = words_of(case.reader)
        flags = importlib.import_module(f"tools.{tool}").FLAGS
        names = re.findall(r"^  --(\w+)", flags.help_text(), re.MULTILINE)
        case.spoiled = tool
        for _ in range(rng.choice([1, 1, 1, 2])):
            words, case.words = other_flag(rng, words, names)
        case.reader = case.command = [tool, *words]
        case.whole = False  # one word may hold blanks
        return self._looked_at(case)

    def _looked_at(self, case):
        if case.kind.up_to_training:
            case.reader = readers.checked_words(words_of(case.reader))
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
        self._traces = Traces(case.folder, case.kind.made_again)
        self._said = case.folder.with_name(f"{case.folder.name}.err")
        self._started = time.monotonic()
        self._feeder = self._feed()
        self._pid = self._begin()
        self._base = self._peak = _own_memory(os.getpid()) if not case.whole else 0
        self._status: int | None = None

    def _begin(self):
        case = self._case
        if not case.whole:
            return _fork(functools.partial(_read, case.reader), case.folder, self._said)
        words = [sys.executable, "-m", "keras_bert_impl", *words_of(case.reader)]
        with self._said.open("wb") as said:
            process = subprocess.Popen(
                words,
                cwd=case.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        process.returncode = 0  # it is waited for here
        return process.pid

    def _feed(self):
        """Writes into a pipe that may be read as text, or reads one that is an output."""
        path = self._case.folder / self._case.spoiled
        if not (path.is_fifo() and any(map(path.match, self._case.kind.streams))):
            return None
        other = path.read_bytes if path.match("out*") else lambda: path.write_bytes(_FED)
        return _fork(lambda: bool(other()) and 0, path.parent, None)

    def ended(self) -> bool:
        """Whether the process has ended; it is killed where it goes beyond its bounds."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = status
            return True
        kind = self._case.kind
        self._peak = max(self._peak, _own_memory(self._pid))
        more = (_WHOLE_SECONDS, 800) if self._case.whole else (0, 0)
        if hangs(
            time.monotonic() - self._started,
            kind.seconds + more[0],
            functools.partial(_times_of, self._pid),
        ):
            self._limit = HANG
        elif (self._peak - self._base) >> 20 > kind.megabytes + more[1]:
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
        if self._feeder is not None:
            _kill_group(self._feeder)
            os.waitpid(self._feeder, 0)
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
        if case.command is not None:
            places = _places_in(case.command)
        judged = judge(end, case.folder, places)
        if end.limit or judged.outcome == TRACEBACK:
            return judged
        if left := self._traces.wrong(end.code, list(case.kind.outputs)):
            return left
        if judged.outcome != SUCCESS:
            return judged
        if case.fatal:
            return Judged(WRONG, f"{case.spoiled} is {case.words}, but exit code 0")
        with contextlib.chdir(case.folder):
            wrong = case.kind.check()
        return Judged(WRONG, wrong) if wrong else judged


def _places_in(command):
    """What a sentence may mention of a command: values and their items."""
    values = [word.partition("=")[2] for word in command if "=" in word]
    items = [one.strip(' "') for value in values for one in value.split(",")]
    blank = [] if all(value.strip() for value in values) else ["is empty"]  # what else may it say
    return [*filter(None, (*values, *items)), *blank]


def hangs(elapsed: float, limit: float, times: Callable[[], tuple[float, float]]) -> bool:
    """Whether a process will not end, which one that waits for a core of a busy machine will.

    Args:
        elapsed: the seconds since its start.
        limit: the seconds of a processor that it may take, and those that it may do nothing.
        times: gives the seconds that it has computed, and those that it waited for a core.
    """
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
        tool, *words = words_of(reader)
        return importlib.import_module(f"tools.{tool}").main(words)
    try:
        reader()
    except UserError as error:
        for sentence in error.sentences:
            sys.stderr.write(f"Error: {' '.join(sentence.split())}\n")
        return 1
    return 0
