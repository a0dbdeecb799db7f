"""Runs a tool: `python -m keras_bert_impl TOOL --flags`, which is also the command `keras-bert`.

It is the one module of the library that knows the tools, and nothing imports it. In an installed
package they stand at `keras_bert_impl.tools` (setup.py renames them), so that this name finds them
everywhere, whatever else is called `tools`.
"""

import signal
import sys


def main() -> int:
    """Runs the tool that the first word of the command line names; gives its exit code.

    Until a tool can say in a sentence what is kept, Ctrl-C ends the process at once: nothing was
    begun, and a traceback of imports would not help anyone.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tools.__main__ import main as run

    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
