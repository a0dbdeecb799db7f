"""How a stopped tool ends: with its exit code, and a sentence that says what is kept."""

import atexit
import signal
import sys
from collections.abc import Callable

from keras_bert_impl.interrupts import EXIT_SIGNAL, Stops, signal_of, stops_raise, what_is_kept

CONTINUES = "the same command continues"
_BEGINS_ANEW = "the same command begins anew"
_NAMED = 3  # of more files a sentence says how many


def end_quietly() -> None:
    """From the interpreter's end on, Ctrl-C ends it without a traceback: all work is done."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)


def run_to_an_end(work: Callable[[Stops], int], continues: bool = False) -> int:
    """Lets a tool work; a stop ends it with a sentence on standard error, and no traceback.

    Args:
        work: does it, and gives the exit code; it gets what says whether a stop came.
        continues: whether the same command continues; otherwise it begins anew.

    Returns:
        The exit code: 130 after Ctrl-C, 143 after SIGTERM.
    """
    with stops_raise() as stops:
        try:
            return work(stops)
        except BaseException as error:
            # A stop may have become another exception on its way through foreign code.
            number = stops.number or signal_of(error)
            if number is None:
                raise
            how = "Terminated" if number == signal.SIGTERM else "Interrupted"
            sys.stderr.write(f"\n{how}; {what_is_kept(error) or _kept(continues)}.\n")
            return EXIT_SIGNAL + number


def _kept(continues: bool) -> str:
    """What a stop leaves of a tool that says nothing of it.

    Example:
        >>> _kept(continues=True)
        'what is finished is kept, and the same command continues'
    """
    if continues:
        return f"what is finished is kept, and {CONTINUES}"
    from keras_bert_impl import files  # not before this module can tell of a stop

    there = [str(path) for path in files.appeared if path.exists()]
    more = f" (and {len(there) - _NAMED:,} more)" if len(there) > _NAMED else ""
    written = f"{', '.join(there[:_NAMED])}{more} is written" if there else "no file was written"
    return f"{written}, and {_BEGINS_ANEW}"
