"""Keeping other processes away from what one process works on."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import without_following


@contextlib.contextmanager
def owned(lock_file: Path, busy: str) -> Iterator[bool]:
    """Inside the block no other process is inside a block with this lock file.

    A process that is killed lets go. The file is removed at the end.

    Args:
        lock_file: made here; its folder must exist.

    Yields:
        Whether the lock is held: on a file system without locks no process is kept out.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / ".lock"
        >>> with owned(file, "Another run is at work here.") as held:
        ...     file.exists()
        True
        >>> file.exists()
        False
    """
    with contextlib.ExitStack() as stack:
        held = None
        while held is None:
            file = stack.enter_context(_opened(lock_file))
            held = _try_lock(file.fileno(), busy)
            if held and not _is_still_there(lock_file, file.fileno()):
                held = None  # the process before removed the file after it was opened here
        try:
            yield held
        finally:
            if held:
                lock_file.unlink(missing_ok=True)


def _opened(lock_file: Path) -> IO[str]:
    try:
        return open(lock_file, "a", opener=without_following)  # a pipe is refused, too
    except OSError as error:
        raise UserError(
            f"{lock_file}: cannot be opened to lock it ({error.strerror}); remove it."
        ) from error


def _try_lock(descriptor: int, busy: str) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(busy) from error
    except OSError:
        return False  # no locks here
    return True


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
