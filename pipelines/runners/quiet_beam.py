"""Keeps off the terminal what Beam says at the good end of a run.

When a job is done, the runner hangs up on Beam's workers. Where they are threads of this process, a
thread that still reads what the runner sends then fails with gRPC's CANCELLED, and Beam logs two
tracebacks. A job that fails is told otherwise: by an exception where it was started.
"""

import logging
import threading

_LOGGERS = ("", "apache_beam.runners.worker.data_plane", "apache_beam.utils.subprocess_server")
_SPOKEN = ("apitools not found", "Really starting service", "Really destroying service")
_shown = threading.excepthook


def keep_beam_quiet() -> None:
    """From now on a good run on Beam ends without tracebacks; call it before Beam is imported.

    Only what the runner cancelled is silent, and three remarks that are no warnings.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_news)
    threading.excepthook = _show_unless_cancelled


def _show_unless_cancelled(failed: threading.ExceptHookArgs) -> None:
    if not _is_hanging_up(failed.exc_value):
        _shown(failed)


def _is_hanging_up(error: BaseException | None) -> bool:
    import grpc  # which Beam brings

    return isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.CANCELLED


def _is_news(record: logging.LogRecord) -> bool:
    if record.exc_info and record.exc_info[1] is not None:
        return not _is_hanging_up(record.exc_info[1])
    return not record.getMessage().startswith(_SPOKEN)
