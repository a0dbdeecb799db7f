"""Programs that XLA compiled for this machine's processor, kept for the next run.

TensorFlow keeps them by itself, in a folder that TF_XLA_FLAGS names. It takes one where the whole
program before compiling is the same, byte by byte; it does not look at what else the machine code
follows from, and a damaged file ends the run with an error. So a run has a folder of its own, and
finds in it links to what earlier runs made on such a machine, each checked by its digest. When the
run ends, what is new moves to the store; what a killed run left moves when the next one begins.
"""

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from keras_bert_impl.backend import usable_cores
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import file_sha256, remove
from keras_bert_impl.user_cache import keep_newest, own_folder

EFFORT = "xla_backend_optimization_level=2"
"""A flag of XLA: our kernels are as fast as with 3, and compiled in two thirds of the time."""

_MOST_BYTES = 256 << 20  # some thousand programs; all are read at each start
_FREE_BYTES = 1 << 30  # a disk that fills up meanwhile would end the run
_TRIED_FILES, _TRIED_BYTES = 64, 1 << 18  # each; a quota is not seen otherwise
_BEGINNING = 600  # seconds; a run has its lock long before
_ENDING, _LOCK = ".pb", "lock"
_FLAG = "tf_xla_persistent_cache"
_CPU_FACTS = Path("/proc/cpuinfo")
_MATTER = ("TF_ENABLE_ONEDNN_OPTS", "CUDA_VISIBLE_DEVICES")


def keep_programs() -> None:
    """From now on TensorFlow, which is not imported yet, keeps what XLA compiles for CPUs.

    Nothing is kept where the user says otherwise, by TF_XLA_FLAGS, by XLA_FLAGS, which programs
    follow from, or by no cache; where the cache cannot be used, or has no links; where its disk is
    nearly full; where nothing is known of the processor; or where TensorFlow's errors are shown
    (TF_CPP_MIN_LOG_LEVEL below 3): it takes each program that it finds for one of another machine.
    """
    given = any(name in os.environ for name in ("TF_XLA_FLAGS", "XLA_FLAGS"))
    shown = os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "3"
    if given or shown or "tensorflow" in sys.modules:
        return
    with contextlib.suppress(UserError, OSError):  # a cache is no reason to stop
        store, running, machine = own_folder("programs"), own_folder("running"), _machine()
        if not (store and running and machine) or shutil.disk_usage(store).free < _FREE_BYTES:
            return
        if any(sign in str(running) for sign in "\"'\\\n"):
            return  # TensorFlow would read another name
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        kind = f"{machine}~{boot}~"
        _clear(store, running, machine, kind)
        folder, lock = _begun(running, kind)
        _take(store, folder, machine)
        flags = {f"{_FLAG}_directory": f'"{folder}"', f"{_FLAG}_device_types": "CPU"}
        os.environ["TF_XLA_FLAGS"] = " ".join(f"--{name}={flags[name]}" for name in flags)
        atexit.register(_end, store, folder, machine, os.getpid(), lock)


def _begun(running: Path, kind: str) -> tuple[Path, IO[bytes]]:
    """A new folder for a run, and the file by whose lock others know that the run lives."""
    folder = Path(tempfile.mkdtemp(prefix=kind, dir=running))
    try:
        tried = [folder / str(number) for number in range(_TRIED_FILES)]
        for path in tried:
            path.write_bytes(bytes(_TRIED_BYTES))
        lock = tried[0].open("rb+")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.link(tried[0], folder / _LOCK)  # which is locked from its beginning
        lock.truncate(0)
        for path in tried:
            path.unlink()
    except BaseException:
        remove(folder)
        raise
    return folder, lock


def _clear(store: Path, running: Path, machine: str, kind: str) -> None:
    """Removes the folders of runs that were killed, whatever machine or container they ran in."""
    for folder in running.iterdir():
        with contextlib.suppress(OSError):
            if not (folder / _LOCK).exists():  # its run begins, or was killed before it had one
                if time.time() - folder.stat().st_mtime > _BEGINNING:
                    remove(folder)
                continue
            with (folder / _LOCK).open("rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if folder.name.startswith(kind):  # not if the machine stopped: it may not be whole
                    _give(store, folder, machine)
                _remove(folder)


def _remove(folder: Path) -> None:
    """Removes the folder of a run, its lock last: who is killed meanwhile leaves it to the next."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            remove(path)
    remove(folder)


def _machine() -> str | None:
    """A digest of what the machine code of a program follows from, besides the program."""
    first, _, _ = _CPU_FACTS.read_text(encoding="utf-8").partition("\n\n")
    named = ("model", "flags", "Feat", "CPU ")
    facts = [line for line in first.split("\n") if line.startswith(named)]
    if not facts:
        return None
    facts += [platform.machine(), str(usable_cores()), str(os.cpu_count())]
    # Where a GPU is used XLA compiles for its processor, too, but with other flags.
    facts += [EFFORT, *(os.environ.get(name, "") for name in _MATTER)]
    facts += [str(Path("/dev/nvidiactl").exists())]
    spec = importlib.util.find_spec("tensorflow")
    for place in (spec and spec.submodule_search_locations) or ():
        for library in sorted(Path(place).glob("libtensorflow*")):
            found = library.stat()
            facts.append(f"{library.name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _take(store: Path, folder: Path, machine: str) -> None:
    """Links what fits this machine and is whole into the folder of a run; removes what is not."""
    for path in store.glob(f"{machine}~*"):
        *_, digest, name = path.name.split("~")
        with contextlib.suppress(OSError, UserError):  # another process removed it, say
            if path.is_symlink() or file_sha256(path) != digest:
                remove(path)
            else:
                os.utime(path, ns=(0, path.stat().st_mtime_ns))  # unread: see `_give`
                os.link(path, folder / name)


def _give(store: Path, folder: Path, machine: str) -> None:
    """Moves what a run compiled to the store; what it read of the store counts as new."""
    with contextlib.suppress(OSError, UserError):
        for path in folder.glob(f"*{_ENDING}"):
            found = path.stat()
            if found.st_nlink == 1:  # the others came from the store
                path.replace(store / f"{machine}~{file_sha256(path)}~{path.name}")
            elif found.st_atime_ns:
                os.utime(path)
        keep_newest(store, _MOST_BYTES)


def _end(store: Path, folder: Path, machine: str, process: int, lock: IO[bytes]) -> None:
    """Gives what a run compiled, and removes the run's folder."""
    if os.getpid() == process:  # not in a copy of it, which ends earlier
        with contextlib.suppress(OSError):  # somebody may have cleared the cache
            _give(store, folder, machine)
            _remove(folder)
        lock.close()
