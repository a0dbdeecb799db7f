"""Programs that XLA compiled for this machine's processor, kept for the next run.

TensorFlow keeps them by itself, in a folder that TF_XLA_FLAGS names. It takes one where the whole
program before compiling is the same, byte by byte; it does not look at what else the machine code
follows from, and a damaged file ends the run with an error. So a run has a folder of its own, and
finds in it links to what earlier runs made on such a machine, each checked by its digest. When the
run ends, what is new moves to the store. A run that is killed gives nothing.
"""

import atexit
import contextlib
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from keras_bert_impl.backend import usable_cores
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import aside_of, file_sha256, remove
from keras_bert_impl.user_cache import keep_newest, own_folder

_MOST_BYTES = 256 << 20  # some thousand programs; all are read at each start
_FREE_BYTES = 1 << 30  # a disk that fills up meanwhile would end the run
_ENDING = ".pb"
_FLAG = "tf_xla_persistent_cache"


def keep_programs() -> None:
    """From now on TensorFlow, which is not imported yet, keeps what XLA compiles for CPUs.

    Nothing is kept where the user says otherwise, by TF_XLA_FLAGS, by XLA_FLAGS, which programs
    follow from, or by no cache; where the cache cannot be used; or where its disk is nearly full.
    """
    given = any(name in os.environ for name in ("TF_XLA_FLAGS", "XLA_FLAGS"))
    if given or "tensorflow" in sys.modules:
        return
    with contextlib.suppress(UserError, OSError):  # a cache is no reason to stop
        store, running = own_folder("programs"), own_folder("running")
        if store is None or running is None or shutil.disk_usage(store).free < _FREE_BYTES:
            return
        folder = aside_of(running / "programs")
        if any(sign in str(folder) for sign in "\"'\\\n"):
            return  # TensorFlow would read another name
        remove(folder)
        folder.mkdir(mode=0o700)
        machine = _machine()
        _take(store, folder, machine)
        flags = {f"{_FLAG}_directory": f'"{folder}"', f"{_FLAG}_device_types": "CPU"}
        os.environ["TF_XLA_FLAGS"] = " ".join(f"--{name}={flags[name]}" for name in flags)
        atexit.register(_give, store, folder, machine, os.getpid())


def _machine() -> str:
    """A digest of what the machine code of a program follows from, besides the program."""
    facts = [platform.machine(), str(usable_cores()), str(os.cpu_count())]
    with contextlib.suppress(OSError):
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
        facts += [line for line in first.split("\n") if line.startswith(("model", "flags", "Feat"))]
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
                os.link(path, folder / name)


def _give(store: Path, folder: Path, machine: str, process: int) -> None:
    """Moves what a run compiled to the store, and removes the run's folder."""
    if os.getpid() != process:  # a copy of it, which ends earlier
        return
    with contextlib.suppress(OSError, UserError):
        for path in folder.glob(f"*{_ENDING}"):
            if path.stat().st_nlink == 1:  # the others came from the store
                path.replace(store / f"{machine}~{file_sha256(path)}~{path.name}")
        keep_newest(store, _MOST_BYTES)
    remove(folder)
