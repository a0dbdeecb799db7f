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
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.errors import UserError
from tests.fuzz.mutators import spoil
from tests.fuzz.outcomes import (
    HANG,
    MEMORY,
    SENTENCE,
    SUCCESS,
    Judged,
    judge,
    last_lines,
    left_behind,
)

ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 0.01
_MOST_TIMES = 10  # the limit by the clock: a busy machine is no hang

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
    """One spoiled thing and its reader; a negative number spoils nothing, and counts readers."""

    kind: Kind
    number: int
    folder: Path = Path()
    spoiled: str = ""
    words: str = "valid"
    reader: Reader = ""
    judged: Judged = dataclasses.field(default_factory=lambda: Judged(SUCCESS))
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind.name}:{self.number}"

    @property
    def bad(self) -> bool:
        """Whether it ended as nothing may end, or a valid file was not read."""
        return self.judged.outcome not in (SUCCESS, SENTENCE)[: 1 + (self.number >= 0)]

    def told(self) -> str:
        """The case in one line."""
        reader = self.reader.__name__ if callable(self.reader) else self.reader
        return f"{self.spoiled}: {self.words} → {reader}"


def import_all() -> None:
    """Imports what the readers need, so that their processes need not; uses nothing of it."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # a name that nobody knows is looked for on the hub
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from tools.table import tool_named, tool_names

    # With its text kernels, TensorFlow looks for other libraries at each start otherwise.
    for name in ("tensorflow", "tensorflow_text", "keras", "scipy.stats"):
        importlib.import_module(name)
    for name in tool_names():
        tool_named(name).flags  # noqa: B018 - its config is imported
    for path in sorted((*ROOT.glob("pipelines/**/*.py"), *ROOT.glob("keras_bert_impl/**/*.py"))):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if not name.endswith(("__main__", "__init__", ".beam")):
            with contextlib.suppress(ImportError, UserError):  # extras that are not here
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what a collection in a process touches is copied for it


class Runner:
    """Runs cases one after the other, which stand in a folder, with the draws of a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed

    def run(self, case: Case) -> None:
        """Runs a case; its folder stays."""
        started = time.monotonic()
        self._make(case)
        before, said = set(case.folder.rglob("*")), case.folder.with_suffix(".err")
        pid = _fork(functools.partial(_read, case.reader), case.folder, said, case.kind.seconds)
        base = peak = _own_memory(os.getpid())
        limit = ""
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            peak = max(peak, _own_memory(pid))
            if time.monotonic() - started > case.kind.seconds * _MOST_TIMES:
                limit = HANG
            elif (peak - base) >> 20 > case.kind.megabytes:
                limit = MEMORY
            if limit:
                os.kill(pid, signal.SIGKILL)
                ended = os.waitpid(pid, 0)
                break
            time.sleep(_LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what it has left behind
        code = os.waitstatus_to_exitcode(ended[1])
        case.seconds, case.megabytes = time.monotonic() - started, (peak - base) / (1 << 20)
        with said.open("rb") as file:
            text = file.read(1 << 20).decode(errors="replace")
        if limit or code == -signal.SIGXCPU:
            case.judged = Judged(limit or HANG, last_lines(text))
            return
        path = Path(case.spoiled)
        places = [*path.parts, path.stem, *(one.name for one in case.folder.rglob("*.*"))]
        case.judged = judge(code, text, case.folder, places)
        if case.judged.outcome in (SUCCESS, SENTENCE):
            case.judged = left_behind(case.folder, before, code != 0) or case.judged

    def clear(self, case: Case) -> None:
        """Removes a case's folder."""
        shutil.rmtree(case.folder, ignore_errors=True)
        case.folder.with_suffix(".err").unlink(missing_ok=True)

    def _make(self, case):
        """Copies the valid folder, and spoils the copy."""
        case.folder = self._folder / case.name.replace(":", "-")
        shutil.copytree(self._valid(case.kind), case.folder, symlinks=True)
        if case.number < 0:
            case.reader = case.kind.readers[case.number]
            return
        rng = random.Random(f"{self._seed} {case.name}")
        case.reader = rng.choice(case.kind.readers)
        files: dict[Path, str] = {}
        for pattern, groups in case.kind.spoiled.items():
            for path in sorted(filter(Path.is_file, case.folder.glob(pattern))):
                files.setdefault(path, groups)
        path, groups = rng.choice(list(files.items()))
        case.spoiled = path.relative_to(case.folder).as_posix()
        case.words = spoil(rng, path, groups)

    def _valid(self, kind):
        """The valid folder of a kind, made once by a process of its own."""
        folder = self._folder / f"valid-{kind.make.__name__}"
        if not folder.exists():
            folder.mkdir()
            said = folder.with_suffix(".log")
            _, status = os.waitpid(_fork(functools.partial(kind.make, folder), folder, said), 0)
            if status:
                raise RuntimeError(f"no seed for {kind.name}:\n{said.read_text()[-3000:]}")
        return folder


def _own_memory(pid):
    """The bytes that a process has to itself, files that it maps aside."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.split("RssAnon:")[1].split()[0]) << 10
    return 0


def _fork(work, folder, said, seconds=resource.RLIM_INFINITY):
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
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        written = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
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
        from tools.table import tool_named

        tool, *words = reader.split()
        return tool_named(tool).main(words)
    try:
        reader()
    except UserError as error:
        sys.stderr.write(f"Error: {' '.join(str(error).split())}\n")
        return 1
    return 0
