"""Going on when another worker dies: start again, and wait until it is back."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import tensorflow as tf

from keras_bert_impl.training.strategy import Devices

_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


@contextlib.contextmanager
def restart_when_a_worker_is_lost(
    devices: Devices, report: Callable[[str], None]
) -> Iterator[None]:
    """Inside the block, losing another worker starts this process again with its own command.

    TensorFlow's collectives cannot go on with a worker that died. The new process waits until all
    workers are there again, and resumes from the newest checkpoint as they do.

    Args:
        devices: with one worker nothing is done.
        report: is told in a line.
    """
    try:
        yield
    except _LOST:
        if devices.workers == 1:
            raise
        report(
            "Another worker was lost; this one starts again and waits until it is back: start the "
            "same command there."
        )
        _start_again()


def _start_again() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # The old server's port must not stay open in the new process.
    os.closerange(3, 65536)
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the very command that is running
