"""Keeping other processes away from what one process works on."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError


@contextlib.contextmanager
def owned(lock_file: Path, busy: str) -> Iterator[None]:
    """Inside the block no other process is inside a block with this lock file.

    A process that is killed lets go. The file is made here, in a folder that exists, and removed at
    the end. On a file system without locks no process is kept out.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / ".lock"
        >>> with owned(file, "Another run is at work here."):
        ...     file.exists()
        True
        >>> file.exists()
        False
    """
    with contextlib.ExitStack() as stack:
        while True:
            try:
                # Neither through a link, nor waiting for the other end of a pipe.
                flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                file = os.open(lock_file, flags, 0o666)
            except OSError as error:
                why = f"cannot be opened to lock it ({error.strerror}); remove it"
                raise UserError(f"{lock_file}: {why}.") from error
            stack.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                there = os.path.samestat(os.fstat(file), lock_file.stat())
            except BlockingIOError as error:
                raise UserError(busy) from error
            except FileNotFoundError:
                there = False
            except OSError:
                break
            if there:
                break
            # The process before removed the file after it was opened here.
        stack.callback(lock_file.unlink, missing_ok=True)
        yield
