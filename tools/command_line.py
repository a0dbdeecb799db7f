"""Running a tool: its lines on standard error, and one sentence for a user's mistake."""

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert_impl.backend import choose_tensorflow
from keras_bert_impl.errors import UserError, escaped
from keras_bert_impl.files import appeared
from keras_bert_impl.interrupts import EXIT_SIGNAL, Stops, take_stop
from keras_bert_impl.quiet_tensorflow import import_tensorflow_quietly, is_no_retracing
from tools.endings import EXIT_DONE, EXIT_USER_ERROR, end_of_stopped, run_to_an_end

if TYPE_CHECKING:
    from tools.config_flags import ConfigFlags


def _show_warning(
    flag_set: "ConfigFlags[Any]", message: Warning | str, category: type[Warning], *_: Any
) -> None:
    """Shows a warning for the user in one line; warnings for programmers have no place here."""
    if issubclass(category, UserWarning):
        sys.stderr.write(f"Warning: {escaped(flag_set.in_flags(str(message)))}\n")


class _InFlags(logging.Formatter):
    """Shows a log record as its message alone, with this tool's flags for parameters."""

    def __init__(self, flag_set: "ConfigFlags[Any]") -> None:
        super().__init__("%(message)s")
        self._flag_set = flag_set

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self._flag_set.in_flags(super().format(record)))


def _is_new(record: logging.LogRecord, told: set[str]) -> bool:
    if record.levelno != logging.WARNING:
        return True
    before = len(told)
    told.add(record.getMessage())
    return len(told) > before


def show_lines(flag_set: "ConfigFlags[Any]") -> None:
    """Sends to stderr what the library and the jobs log (what was loaded, what was repaired).

    TensorFlow's own lines about its start are not shown. `run` does this; a process that a tool
    starts does it for itself.
    """
    import_tensorflow_quietly()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_InFlags(flag_set))
    told = set[str]()
    handler.addFilter(lambda record: _is_new(record, told))  # files are read more than once
    logging.basicConfig(handlers=[handler], force=True)
    warnings.showwarning = functools.partial(_show_warning, flag_set)
    for room in ("keras_bert_impl", "pipelines"):
        logging.getLogger(room).setLevel(logging.INFO)
    # Batches of a few lengths are compiled one length at a time; that is meant.
    logging.getLogger("tensorflow").addFilter(is_no_retracing)


def run(
    flag_set: "ConfigFlags[Any]",
    main: Callable[[], None],
    arguments: Sequence[str] | None = None,
    *,
    keep_unknown: bool = False,
    continues: bool = False,
) -> int:
    """Parses the flags, runs `main` and gives the exit code.

    A `UserError` is printed on standard error, one line a sentence (exit code 1). A stop by Ctrl-C
    gives 130 and one by SIGTERM 143, whether or not the work could be saved first: `&&` goes on
    after what is finished only. Any other exception is a bug and keeps its traceback.

    Args:
        continues: whether the same command continues where it was interrupted; the user is told.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    appeared.clear()
    take_stop()  # of an earlier call in this process
    return run_to_an_end(lambda stops: _run(flag_set, main, words, keep_unknown, stops), continues)


def _run(
    flag_set: "ConfigFlags[Any]",
    main: Callable[[], None],
    words: list[str],
    keep_unknown: bool,
    stops: Stops,
) -> int:
    """What `run` does where nothing stops it."""
    try:
        if any(word in ("--help", "-h", "-help", "--helpfull", "--helpshort") for word in words):
            sys.stdout.write(flag_set.help_text(full="--helpfull" in words))
            return EXIT_DONE
        flag_set.parse(words, keep_unknown=keep_unknown)
        if keep_unknown:
            flag_set.refuse_mistyped(words)
        show_lines(flag_set)
        choose_tensorflow()
        main()
    except UserError as error:
        if stops.number is not None:
            raise  # the stop reached a worker first, say
        number = take_stop()
        how = "Error" if number is None else "Stopped"
        for sentence in error.sentences:
            sys.stderr.write(f"{how}: {' '.join(flag_set.in_flags(sentence).split())}\n")
        return EXIT_USER_ERROR if number is None else EXIT_SIGNAL + number
    number = take_stop()
    return EXIT_DONE if number is None else end_of_stopped(number)
