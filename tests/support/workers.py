"""How many test processes a machine bears, and how they give memory back."""

import ctypes
import gc
from pathlib import Path

BYTES_OF_A_WORKER = 2.5e9
_CONTAINER = Path("/sys/fs/cgroup")
_GROWN = 5e7  # bytes
_after = 0.0  # the last time that memory was given back


def workers_that_fit(cores: int) -> int:
    """As many as there are cores, where each finds `BYTES_OF_A_WORKER` free; at least one."""
    known = Path("/proc/meminfo")
    if not known.is_file():
        return cores  # no Linux
    free = 1024 * _values(known)["MemAvailable:"]
    limit = _CONTAINER / "memory.max"
    most = limit.read_text().strip() if limit.is_file() else "max"
    if most.isdigit():
        cache = _values(_CONTAINER / "memory.stat")["inactive_file"]
        used = int((_CONTAINER / "memory.current").read_text()) - cache
        free = min(free, int(most) - used)
    return max(1, min(cores, int(free / BYTES_OF_A_WORKER)))


def _values(path: Path) -> dict[str, int]:
    """The numbers of a file whose lines begin with a name and a number."""
    return {line.split()[0]: int(line.split()[1]) for line in path.read_text().splitlines()}


def give_memory_back() -> None:
    """Frees what nobody refers to, and returns it to the system as far as its C library can.

    That takes a quarter of a second: where the process has hardly grown since, it is spared. What
    is left lives to the end, as TensorFlow keeps much; no later collection looks at it again.
    """
    global _after
    if _resident() < _after + _GROWN:
        return
    gc.collect()
    gc.freeze()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    _after = _resident()


def _resident() -> float:
    """The bytes of memory that this process has; endless where no Linux tells."""
    known = Path("/proc/self/statm")
    return int(known.read_text().split()[1]) * 4096 if known.is_file() else float("inf")
