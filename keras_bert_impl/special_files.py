"""Pipes and devices under a file's name: told apart, read as streams, written to as they are.

A reader that opens one like a file waits for ever or never comes to an end, and a rename over one
replaces it.
"""

import errno
import io
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
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
_NO_READER = errno.ENXIO
_SECONDS_TO_WAIT, _SECONDS_BETWEEN = 5.0, 0.05  # for the other end of a named pipe


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

    def __init__(self, pipe: io.RawIOBase, begun: bytes) -> None:
        self._pipe, self._begun, self._position = pipe, begun, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view, filled = memoryview(buffer).cast("B"), len(self._begun[: len(buffer)])
        view[:filled], self._begun = self._begun[:filled], self._begun[filled:]
        while filled < len(view) and (count := self._pipe.readinto(view[filled:])):
            filled += count
        self._position += filled
        return filled

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._pipe.close()
        super().close()


def open_pipe_to_read(path: Path, opened: io.BufferedReader) -> io.BufferedReader:
    """Reads a pipe from now on as a stream.

    Args:
        path: its name.
        opened: it, opened without waiting.

    Raises:
        UserError: nobody writes to it.
    """
    pipe = opened.detach()
    named = Path(os.path.realpath(path)).exists()  # others are the shell's, and have their writer
    # None: its writer has written nothing yet.
    begun = _tried(lambda: pipe.read(io.DEFAULT_BUFFER_SIZE), b"", named)
    if begun == b"" and named:
        pipe.close()
        raise UserError(f"{path}: is a pipe that nothing is written to; start its writer first.")
    os.set_blocking(pipe.fileno(), True)
    return io.BufferedReader(_Stream(pipe, begun or b""))


def open_to_write_plainly(path: Path, mode: str, text: Mapping[str, str]) -> IO | None:
    """Opens what is written to as it is: a pipe, a device, what `/dev/stdout` leads to.

    Args:
        path: its name.
        mode: "w" or "wb".
        text: the encoding and line ends of text.

    Returns:
        None where a file is to appear.

    Raises:
        UserError: it is something that cannot be written to, or a pipe that nobody reads.
    """
    kind = None if path.is_symlink() else kind_of(path)
    if (own := own_descriptor(path)) is not None:
        # Not opened anew: what else is printed there would begin at its beginning again.
        return os.fdopen(os.dup(own), mode, **text)  # type: ignore[call-overload]
    if kind is None:
        return None
    if kind not in (PIPE, DEVICE):
        raise UserError(f"{path}: is a {kind}; name a file.")
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK

    def opened() -> int | None:
        try:
            return os.open(path, flags)
        except OSError as error:
            if kind != PIPE or error.errno != _NO_READER:
                raise
            return None

    descriptor = _tried(opened, None, again=True)
    if descriptor is None:
        raise UserError(f"{path}: is a pipe that nothing reads; start its reader first.")
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, mode, **text)  # type: ignore[call-overload]


def own_descriptor(path: Path) -> int | None:
    """The number of an open file of this process that a name stands for, as `/dev/stdout` does."""
    for _ in range(_MOST_LINKS):
        if found := _OWN_DESCRIPTOR.fullmatch(str(path)):
            return int(found[1])
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _tried(attempt: Callable[[], Any], missing: Any, again: bool) -> Any:
    """What an attempt gives, made again for a while where it gives what says "not there yet"."""
    give_up = time.monotonic() + _SECONDS_TO_WAIT
    while (found := attempt()) == missing and again and time.monotonic() < give_up:
        time.sleep(_SECONDS_BETWEEN)
    return found
