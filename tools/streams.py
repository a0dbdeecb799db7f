"""A tool's standard streams: there whatever the shell closed, and without what a terminal obeys."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

from keras_bert_impl.errors import escaped


class _Closed(io.TextIOBase):
    """A stream that the shell closed; it notes whether something was printed nevertheless."""

    printed = False

    def write(self, text: str) -> int:
        self.printed = True
        return len(text)


_OUT = _Closed()


def open_closed() -> None:
    """Opens the descriptors 0 to 2 on the null device where the shell closed them (`>&-`).

    The next file that is opened would have the number instead, and whatever is printed in it. To
    read such an input fails, and so does to write to `/dev/stdout`, as in GNU's programs.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDWR)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for good
    sys.stdout, sys.stderr = sys.stdout or _OUT, sys.stderr or _Closed()


def lost() -> bool:
    """Whether something was printed on a closed standard output since the last call."""
    printed, _OUT.printed = _OUT.printed, False
    return printed


class _Shown:
    """A stream on which text is shown."""

    def __init__(self, stream: IO[str], escape: bool, may_fail: bool) -> None:
        self._stream, self._escape, self._may_fail = stream, escape, may_fail

    def write(self, text: str) -> None:
        self._do(self._stream.write, escaped(text) if self._escape else text)

    def flush(self) -> None:
        self._do(self._stream.flush)

    def _do(self, act: Callable[..., Any], *arguments: str) -> None:
        try:
            act(*arguments)
        except OSError:
            if not self._may_fail:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def shown_streams() -> Iterator[None]:
    """Inside the block results are printed escaped, and what nobody can read any more is lost.

    JSON stays JSON of the same values. What goes to standard error is escaped where it is made,
    because a progress line moves the cursor.
    """
    out = cast(IO[str], _Shown(sys.stdout, True, sys.stdout.isatty()))
    error = cast(IO[str], _Shown(sys.stderr, False, True))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        yield
