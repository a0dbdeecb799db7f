"""How many test processes a machine bears, and how they give memory back."""

import ctypes
import gc
from pathlib import Path

BYTES_OF_A_WORKER = 2.5e9
_CGROUPS = (  # limit, usage, and what of the usage is only cache: of version 2, and of version 1
    ("memory.max", "memory.current", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
)


def workers_that_fit(cores: int, root: Path = Path("/")) -> int:
    """As many as there are cores, where each finds `BYTES_OF_A_WORKER` free; at least one."""
    free = free_memory(root)
    return cores if free is None else max(1, min(cores, int(free / BYTES_OF_A_WORKER)))


def free_memory(root: Path = Path("/")) -> float | None:
    """The bytes that new processes may take, of the machine and of this container; None: unknown.

    Args:
        root: where `proc` and `sys` are.
    """
    known = root / "proc/meminfo"
    if not known.is_file():
        return None  # no Linux
    free = 1024.0 * _values(known)["MemAvailable:"]
    for limit, usage, facts in _CGROUPS:
        of_container = root / "sys/fs/cgroup"
        if (of_container / limit).is_file() and (of_container / usage).is_file():
            most = (of_container / limit).read_text().strip()
            cache = _values(of_container / facts).get("inactive_file", 0)
            used = int((of_container / usage).read_text()) - cache
            free = min(free, int(most) - used if most.isdigit() else free)
    return free


def _values(path: Path) -> dict[str, int]:
    """The numbers of a file whose lines begin with a name and a number."""
    return {line.split()[0]: int(line.split()[1]) for line in path.read_text().splitlines()}


def give_memory_back() -> None:
    """Frees what nobody refers to, and returns it to the system as far as its C library can."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
