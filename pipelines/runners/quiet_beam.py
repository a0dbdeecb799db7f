"""Keeps off the terminal what Beam says at the good end of a run.

When a job is done, the runner hangs up on Beam's workers. Where they are threads of this process, a
thread that still reads what the runner sends then fails with gRPC's CANCELLED, and Beam logs two
tracebacks. A job that fails is told otherwise: by an exception where it was started.
"""

import logging
import threading
from types import TracebackType
from typing import Any

_DATA_PLANE = "apache_beam.runners.worker.data_plane"
_SERVERS = "apache_beam.utils.subprocess_server"
_SPOKEN = ("apitools not found", "Really starting service", "Really destroying service")


def keep_beam_quiet() -> None:
    """From now on a good run on Beam ends without tracebacks; call it before Beam is imported.

    Only the reading of a stream that the runner cancelled is silent, and three remarks that are no
    warnings. All other errors are shown as they were.
    """
    for name in ("", _DATA_PLANE, _SERVERS):
        logger = logging.getLogger(name)
        if _is_news not in logger.filters:
            logger.addFilter(_is_news)
    if threading.excepthook is not _show_unless_cancelled:
        _before.append(threading.excepthook)
        threading.excepthook = _show_unless_cancelled


_before: list[Any] = []


def _show_unless_cancelled(failed: threading.ExceptHookArgs) -> None:
    if not is_hanging_up(failed.exc_value, failed.exc_traceback):
        _before[-1](failed)


def is_hanging_up(error: BaseException | None, traceback: TracebackType | None) -> bool:
    """Whether an error is gRPC's CANCELLED, met by Beam's reader of the data that a runner sends.

    Args:
        error: what was raised.
        traceback: from where.
    """
    import grpc  # which Beam brings

    if not isinstance(error, grpc.Call) or error.code() != grpc.StatusCode.CANCELLED:
        return False
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__name__") == _DATA_PLANE:
            return True
        traceback = traceback.tb_next
    return False


def _is_news(record: logging.LogRecord) -> bool:
    if record.exc_info and record.exc_info[1] is not None:
        return not is_hanging_up(record.exc_info[1], record.exc_info[2])
    return not record.getMessage().startswith(_SPOKEN)
