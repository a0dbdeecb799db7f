"""How a stopped tool ends: with its exit code, and a sentence that says what is kept."""

import atexit
import contextlib
import signal
import sys
from collections.abc import Iterator

from keras_bert_impl.interrupts import EXIT_SIGNAL, Stops, signal_of, stops_raise, what_is_kept

CONTINUES = "the same command continues"
_BEGINS_ANEW = "the same command begins anew"


def end_quietly() -> None:
    """From the interpreter's end on, Ctrl-C ends it without a traceback: all work is done."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)


class Ending:
    """How a tool ends that may be stopped.

    Attributes:
        stops: the stop that came, if one did.
        code: the exit code of the stop, when it has ended the tool.
    """

    def __init__(self, stops: Stops) -> None:
        self.stops, self.code = stops, 0


@contextlib.contextmanager
def ends_in_a_sentence(continues: bool = False) -> Iterator[Ending]:
    """Inside the block a stop ends the tool with a sentence on standard error, and no traceback.

    Args:
        continues: whether the same command continues; otherwise it begins anew.

    Yields:
        Gets the exit code of a stop: 130 for Ctrl-C, 143 for SIGTERM.
    """
    with stops_raise() as stops:
        ending = Ending(stops)
        try:
            yield ending
        except BaseException as error:
            # A stop may have become another exception on its way through foreign code.
            number = stops.number or signal_of(error)
            if number is None:
                raise
            how = "Terminated" if number == signal.SIGTERM else "Interrupted"
            sys.stderr.write(f"\n{how}; {what_is_kept(error) or _kept(continues)}.\n")
            ending.code = EXIT_SIGNAL + number


def _kept(continues: bool) -> str:
    """What a stop leaves of a tool that says nothing of it.

    Example:
        >>> _kept(continues=False)
        'no file was written, and the same command begins anew'
    """
    if continues:
        return CONTINUES
    from keras_bert_impl import files  # not before this module can tell of a stop

    written = ", ".join(str(path) for path in files.appeared if path.exists())
    return f"{f'{written} is written' if written else 'no file was written'}, and {_BEGINS_ANEW}"
