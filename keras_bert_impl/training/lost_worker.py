"""Going on when another worker dies: this process starts again and waits for it."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator

import tensorflow as tf

from keras_bert_impl.training.config import TrainingConfig

_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,  # it came back so soon that the old connection still stood
    tf.errors.InternalError,
)
_RESTARTS = 5  # so often without a new checkpoint between: then it is no lost worker
_STARTED_AGAIN = "KERAS_BERT_STARTED_AGAIN"  # what the process that starts again must remember


@contextlib.contextmanager
def restart_when_a_worker_is_lost(
    config: TrainingConfig, newest_step: Callable[[], int], log: Callable[[str], None]
) -> Iterator[None]:
    """Inside the block, losing another worker starts this process again with its own command.

    TensorFlow's collectives cannot go on with a worker that died. The new process waits until all
    workers are there again, and resumes from the newest checkpoint as they do. An error that comes
    back time and again without a new checkpoint between is raised.

    Args:
        config: without several workers nothing is done.
        newest_step: gives the step of the run's newest checkpoint.
        log: called with one line before the restart.
    """
    try:
        yield
    except _LOST as error:
        if config.distribution_strategy != "multi_worker_mirrored":
            raise
        step = newest_step()
        before, times = json.loads(os.environ.get(_STARTED_AGAIN, "[-1, 0]"))
        times = times + 1 if step == before else 1
        if times > _RESTARTS:
            raise
        reason = (error.message or type(error).__name__).strip().splitlines()[0]
        log(
            f"Another worker was lost ({reason}); this one starts again and waits until it is "
            "back: start the same command there."
        )
        os.environ[_STARTED_AGAIN] = json.dumps([step, times])
        _start_again()


def _start_again() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # The old server's port must not stay open in the new process.
    os.closerange(3, 65536)
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the very command that is running
