"""Read-only arrays on disk that do not count as memory for long."""

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray


class MappedArray:
    """A flat array in a file, memory-mapped.

    Pages that were read count as this process's memory until `forget` gives them back; they stay in
    the system's page cache, so reading them again is cheap.

    Args:
        path: a file of nothing but numbers, not empty.
        dtype: their type.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "numbers.bin"
        >>> _ = path.write_bytes(np.arange(3, dtype=np.int64).tobytes())
        >>> MappedArray(path, np.int64).array.tolist()
        [0, 1, 2]
    """

    def __init__(self, path: str | os.PathLike[str], dtype: DTypeLike) -> None:
        with Path(path).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.array: NDArray = np.frombuffer(self._map, dtype)

    def forget(self) -> None:
        """Gives the pages back to the system."""
        self._map.madvise(mmap.MADV_DONTNEED)
