"""Pipes and devices under a file's name: told apart, read as streams, written to as they are.

A reader that opens one like a file waits for ever or never comes to an end, and a rename over one
replaces it.
"""

import io
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.errors import UserError

PIPE, DEVICE = "pipe", "device"
_KINDS = {
    stat.S_IFIFO: PIPE,
    stat.S_IFCHR: DEVICE,
    stat.S_IFBLK: "disk",
    stat.S_IFSOCK: "socket",
}
_OWN_DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self)/fd/(\d+)")
_MOST_LINKS = 40


def kind_of(path: str | os.PathLike[str] | int) -> str | None:
    """What stands under a name, or behind a descriptor, that is neither a file nor a folder.

    Example:
        >>> kind_of("/dev/zero"), kind_of("/tmp"), kind_of("/no/such/file")
        ('device', None, None)
    """
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))  # noqa: PTH116 - or a descriptor
    except OSError:  # whoever opens it tells of that
        return None


def without_waiting(path: str, flags: int) -> int:
    """Opens for `open`, without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def without_following(path: str, flags: int) -> int:
    """Opens for `open` what is no link, without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


class _Stream(io.RawIOBase):
    """What comes out of a pipe; a reading gives all that was asked for, but for the last one."""

    def __init__(self, path: Path) -> None:
        self._pipe, self._position = io.FileIO(path), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Any) -> int:
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and (count := self._pipe.readinto(view[filled:])):
            filled += count
        self._position += filled
        return filled

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._pipe.close()
        super().close()


def open_pipe_to_read(path: Path) -> io.BufferedReader:
    """Reads a pipe as a stream, once there is a writer."""
    return io.BufferedReader(_Stream(path))


def open_to_write_plainly(path: Path, mode: str, text: Mapping[str, str]) -> IO | None:
    """Opens what is written to as it is: a pipe, a device, what `/dev/stdout` leads to.

    Returns:
        None where a file is to appear.
    """
    kind = None if path.is_symlink() else kind_of(path)
    if (own := own_descriptor(path)) is not None:
        # Not opened anew: what else is printed there would begin at its beginning again.
        return os.fdopen(os.dup(own), mode, **text)  # type: ignore[call-overload]
    if kind is None:
        return None
    if kind not in (PIPE, DEVICE):
        raise UserError(f"{path}: is a {kind}; name a file.")
    return path.open(mode, **text)  # type: ignore[call-overload]


def own_descriptor(path: Path) -> int | None:
    """The number of an open file of this process that a name stands for, as `/dev/stdout` does."""
    for _ in range(_MOST_LINKS):
        if found := _OWN_DESCRIPTOR.fullmatch(str(path)):
            return int(found[1])
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None
