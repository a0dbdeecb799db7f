"""How a tool ends that is stopped, or that the machine refuses something, and its streams.

Standard streams are there whatever the shell closed, and bring no terminal's commands along.
"""

import atexit
import codecs
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

from keras_bert_impl.errors import escaped, refusal, shown
from keras_bert_impl.interrupts import EXIT_SIGNAL, Stops, signal_of, stops_raise, what_is_kept

EXIT_DONE, EXIT_USER_ERROR = 0, 1

CONTINUES = "the same command continues"
_BEGINS_ANEW = "the same command begins anew"
_told = False  # of the command that runs: whether it has said where it stopped
_HOW: dict[int, str] = {signal.SIGTERM: "Terminated", signal.SIGHUP: "Hung up"}
_OPEN_IT = "open it, or let it be /dev/null."
_NAMED = 3  # of more files a sentence says how many


def end_quietly() -> None:
    """From the interpreter's end on, Ctrl-C ends it without a traceback: all work is done."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)


def tell_stopped(sentence: str) -> None:
    """Prints where a tool stopped that could save its work, and how to go on."""
    global _told
    _told = True
    print(sentence)


def end_of_stopped(number: int) -> int:
    """The exit code of a tool that a signal asked to stop, and that ended in good order.

    A stop may come when nothing is left to do; it is told then that all is done.
    """
    if not _told:
        sys.stderr.write("Stopped, but all was finished before.\n")
    return EXIT_SIGNAL + number


def run_to_an_end(work: Callable[[Stops], int], continues: bool = False) -> int:
    """Lets a tool work; a stop ends it with a sentence on standard error, and no traceback.

    So does what the machine refuses and nobody has told better: a full disk, say. What was printed
    is on its way when this returns.

    Args:
        work: does it, and gives the exit code; it gets what says whether a stop came.
        continues: whether the same command continues; otherwise it begins anew.

    Returns:
        The exit code: 130 after Ctrl-C, 143 after SIGTERM, 129 where the terminal was closed.
    """
    global _told
    _told = False
    open_closed()
    with shown_streams(), stops_raise() as stops:
        try:
            code = work(stops)
            sys.stdout.flush()
            return _end_of_unread(code) if _lost() else code
        except BaseException as error:
            # A stop may have become another exception on its way through foreign code.
            number = stops.number or signal_of(error)
            if number is None:
                return _end_of_refused(error)
            how = _HOW.get(number, "Interrupted")
            sys.stderr.write(f"\n{how}; {what_is_kept(error) or _kept(continues)}.\n")
            return EXIT_SIGNAL + number


def _end_of_unread(code: int) -> int:
    """Tells that what was printed is lost; it is an error where the tool wrote nothing else."""
    from keras_bert_impl.files import appeared

    how = "Warning" if code or appeared else "Error"
    sys.stderr.write(f"{how}: standard output is closed; {_OPEN_IT}\n")
    return code or (EXIT_DONE if appeared else EXIT_USER_ERROR)


def _end_of_refused(error: BaseException) -> int:
    """Tells what the machine refused; other exceptions are bugs and keep their traceback."""
    if isinstance(error, BrokenPipeError):
        # The reader of our output went away (`| head`): that is no error of ours.
        _print_no_more()
        return EXIT_DONE
    sentence = _sentence_of(error)
    if sentence is None:
        raise error
    _print_no_more()
    sys.stderr.write(f"Error: {sentence}\n")
    return EXIT_USER_ERROR


def _sentence_of(error: BaseException) -> str | None:
    """What the machine refused, and what the user can do."""
    if isinstance(error, MemoryError):
        return "the memory does not suffice; make the input or the batches smaller."
    if isinstance(error, RecursionError):
        return "something in the input is nested too deeply; make it flatter."
    if isinstance(error, UnicodeEncodeError):
        return _about_characters(error)
    reason = refusal(error)
    if reason is None:
        return None
    if reason.startswith("No usable temporary directory"):
        return f"{reason}; free some space, or let TMPDIR name a folder that can be written to."
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return f"standard input is closed; {_OPEN_IT}"
    name = error.filename if isinstance(error, OSError) else None
    return f"{name or 'the output'}: {reason}; free some space, or check the name and permissions."


def _about_characters(error: UnicodeEncodeError) -> str | None:
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    if codecs.lookup(error.encoding).name != encoding:
        return None
    character = shown(error.object[error.start : error.start + 1])
    if encoding == "utf-8":
        return (
            f"what is written holds {character}, which is no character; take it out of the input."
        )
    return f"standard output is {encoding}, which has no {character}; set PYTHONIOENCODING=utf-8."


def _print_no_more() -> None:
    """Throws away what could not be printed: the interpreter would try again at its end."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _kept(continues: bool) -> str:
    """What a stop leaves of a tool that says nothing of it."""
    if continues:
        return f"what is finished is kept, and {CONTINUES}"
    from keras_bert_impl import files  # not before this module can tell of a stop

    there = [str(path) for path in files.appeared if path.exists()]
    more = f" (and {len(there) - _NAMED:,} more)" if len(there) > _NAMED else ""
    written = f"{', '.join(there[:_NAMED])}{more} is written" if there else "no file was written"
    return f"{written}, and {_BEGINS_ANEW}"


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


def _lost() -> bool:
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
