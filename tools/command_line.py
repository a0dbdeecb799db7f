"""Running a tool: its lines on standard error, how it ends, one sentence for what went wrong."""

import contextlib
import errno
import functools
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from keras_bert_impl import backend, files, interrupts
from keras_bert_impl.errors import UserError, escaped, refusal, shown
from keras_bert_impl.kept_programs import keep_programs
from keras_bert_impl.training.time_budget import counting_hours

if TYPE_CHECKING:
    from tools.config_flags import ConfigFlags

EXIT_DONE, EXIT_USER_ERROR = 0, 1

CONTINUES = "the same command continues"
_told = False  # of the command that runs: whether it has said where it stopped
_HOW: dict[int, str] = {signal.SIGTERM: "Terminated", signal.SIGHUP: "Hung up"}
_NAMED = 3  # of more files a sentence says how many


def tell_stopped(sentence: str) -> None:
    """Prints where a tool stopped that could save its work, and how to go on."""
    global _told
    _told = True
    print(sentence)


def run(
    flag_set: "ConfigFlags",
    main: Callable[[], None],
    arguments: Sequence[str] | None = None,
    *,
    keep_unknown: bool = False,
    continues: bool = False,
) -> int:
    """Parses the flags, runs `main` and gives the exit code.

    A `UserError` is printed on standard error (exit code 1). A stop by Ctrl-C gives 130 and one by
    SIGTERM 143, whether or not the work could be saved first: `&&` goes on after what is finished
    only. Any other exception is a bug and keeps its traceback. A message says whether the same
    command `continues` where it was interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    files.appeared.clear()
    interrupts.take_stop()  # of an earlier call in this process
    work = functools.partial(_run, flag_set, main, words, keep_unknown)
    with counting_hours():
        return run_to_an_end(work, continues)


def _run(
    flag_set: "ConfigFlags",
    main: Callable[[], None],
    words: list[str],
    keep_unknown: bool,
    stops: interrupts.Stops,
) -> int:
    """What `run` does where nothing stops it."""
    try:
        if {"--help", "-h", "-help", "--help=true", "--helpfull", "--helpshort"} & {*words}:
            sys.stdout.write(flag_set.help_text(full="--helpfull" in words))
            return EXIT_DONE
        flag_set.parse(words, keep_unknown=keep_unknown)
        _show_lines(flag_set)
        backend.choose_tensorflow()
        if flag_set.keeps_programs:
            keep_programs()
        elif flag_set.keeps_programs is False:
            os.environ.setdefault("TF_XLA_FLAGS", "")  # nor do the tools that it runs
        main()
    except UserError as error:
        if stops.number is not None:
            raise  # the stop reached a worker first, say
        number = interrupts.take_stop()
        how = "Error" if number is None else "Stopped"
        sys.stderr.write(f"{how}: {' '.join(flag_set.in_flags(str(error)).split())}\n")
        return EXIT_USER_ERROR if number is None else interrupts.EXIT_SIGNAL + number
    number = interrupts.take_stop()
    if number is None:
        return EXIT_DONE
    if not _told:
        sys.stderr.write("Stopped, but all was finished before.\n")
    return interrupts.EXIT_SIGNAL + number


def run_to_an_end(work: Callable[[interrupts.Stops], int], continues: bool = False) -> int:
    """Lets a tool work; a stop ends it with a sentence on standard error, and no traceback.

    So does what the machine refuses without a better message: a full disk, say. What was printed
    is on its way when this returns the exit code: that of `work`, 130 after Ctrl-C, 143 after
    SIGTERM, 129 where the terminal was closed.
    """
    global _told
    _told = False
    _open_closed()
    with _shown_streams(), interrupts.stops_raise() as stops:
        try:
            code = work(stops)
            sys.stdout.flush()
            return code
        except BaseException as error:
            # A stop may have become another exception on its way through foreign code.
            number = stops.number or interrupts.signal_of(error)
            if number is None:
                return _end_of_refused(error)
            how = _HOW.get(number, "Interrupted")
            sys.stderr.write(f"\n{how}; {interrupts.what_is_kept(error) or _kept(continues)}.\n")
            return interrupts.EXIT_SIGNAL + number


def _kept(continues: bool) -> str:
    """What a stop leaves of a tool that says nothing of it."""
    if continues:
        return f"what is finished is kept, and {CONTINUES}"
    there = [str(path) for path in files.appeared if path.exists()]
    more = f" (and {len(there) - _NAMED:,} more)" if len(there) > _NAMED else ""
    written = f"{', '.join(there[:_NAMED])}{more} is written" if there else "no file was written"
    return f"{written}, and the same command begins anew"


def _end_of_refused(error: BaseException) -> int:
    """Tells what the machine refused; other exceptions are bugs and keep their traceback."""
    sentence = _sentence_of(error)
    if sentence is None and not isinstance(error, BrokenPipeError):
        raise error
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            _throw_away(sys.stdout)  # the interpreter would try again at its end
    if sentence is None:  # the reader of our output went away (`| head`): no error of ours
        return EXIT_DONE
    sys.stderr.write(f"Error: {sentence}\n")
    return EXIT_USER_ERROR


def _sentence_of(error: BaseException) -> str | None:
    """What the machine refused, and what the user can do."""
    ours = (__package__.partition(".")[0], "keras_bert_impl", "pipelines")
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] not in ours:
        return backend.not_installed("this", error)
    if isinstance(error, MemoryError):
        return "the memory does not suffice; make the input or the batches smaller."
    if isinstance(error, RecursionError):
        return "something in the input is nested too deeply; make it flatter."
    if isinstance(error, UnicodeEncodeError):
        character = shown(error.object[error.start : error.start + 1])
        return (
            f"{error.encoding} has no {character}; take it out of the input, or set "
            "PYTHONIOENCODING=utf-8 where it was to be printed."
        )
    reason = refusal(error)
    if reason is None:
        return None
    if reason.startswith("No usable temporary directory"):
        return f"{reason}; free some space, or let TMPDIR name a folder that can be written to."
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "a standard stream is closed; open it, or let it be /dev/null."
    name = error.filename if isinstance(error, OSError) else None
    return f"{name or 'the output'}: {reason}; free some space, or check the name and permissions."


def _open_closed() -> None:
    """Opens the descriptors 0 to 2 on the null device where the shell closed them (`>&-`).

    The next file that is opened would have the number instead, and whatever is printed in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for good
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _throw_away(stream: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Shown:
    """A stream on which text is shown; a terminal that was closed takes nothing more."""

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
            _throw_away(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _shown_streams() -> Iterator[None]:
    """Inside the block results are printed escaped: no terminal obeys what a file holds.

    JSON stays JSON of the same values. What goes to standard error is escaped where it is made,
    because a progress line moves the cursor.
    """
    out = cast(IO[str], _Shown(sys.stdout, True, sys.stdout.isatty()))
    error = cast(IO[str], _Shown(sys.stderr, False, True))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        yield


class _Lines(logging.StreamHandler):
    """Shows what is logged, and warnings for the user, with this tool's flags for parameters.

    A warning is shown once: files are read more than once.
    """

    def __init__(self, flag_set: "ConfigFlags") -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(message)s"))
        self._flag_set, self._told = flag_set, set[str]()

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self._flag_set.in_flags(super().format(record)))

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        message, before = record.getMessage(), len(self._told)
        self._told.add(message)
        return len(self._told) > before

    def show_warning(
        self, message: Warning | str, category: type[Warning], *_: Any, **__: Any
    ) -> None:
        """Warnings for programmers have no place here."""
        if issubclass(category, UserWarning):
            sys.stderr.write(f"Warning: {escaped(self._flag_set.in_flags(str(message)))}\n")


def _show_lines(flag_set: "ConfigFlags") -> None:
    """Sends to stderr what the library and the jobs log (what was loaded, what was repaired)."""
    backend.import_tensorflow_quietly()  # without its own lines about its start
    lines = _Lines(flag_set)
    logging.basicConfig(handlers=[lines], force=True)
    warnings.showwarning = lines.show_warning
    for room in ("keras_bert_impl", "pipelines"):
        logging.getLogger(room).setLevel(logging.INFO)
    # Batches of a few lengths are compiled one length at a time; that is meant.
    logging.getLogger("tensorflow").addFilter(backend.is_no_retracing)
