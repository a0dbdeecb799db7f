"""A server's life: it listens, says where, and at a stop finishes what it has begun."""

import contextlib
import errno
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.interrupts import STOPS
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.connections import MOST_HEAD, BoundedProtocol

_LOGGER = logging.getLogger(__name__)

_BACKLOG = 4096  # connections that wait to be accepted
_FILES_BESIDE = 256  # open files that are no connections


def serve(app: Starlette, config: ServerConfig, listening: socket.socket) -> None:
    """Serves an application until a stop (`interrupts.STOPS`), and then finishes what was begun.

    A second Ctrl-C ends it at once. One line of the log says where it listens.

    Args:
        listening: of `listen`; it is closed.
    """
    _allow_files(config.max_connections + _FILES_BESIDE)
    host, port = listening.getsockname()[:2]
    shown_host = f"[{host}]" if ":" in host else host
    _LOGGER.info("Listening at http://%s:%d (Ctrl-C stops).", shown_host, port)
    server = _Server(_uvicorn_config(app, config), app)
    with _quiet_about_foreign_faults():
        server.run(sockets=[listening])
    _LOGGER.info("Stopped; what was begun is answered.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Example:
        >>> with listen("127.0.0.1", 0) as listening:
        ...     listening.getsockname()[0]
        '127.0.0.1'
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = reason_of(error)
        raise UserError(f"`host={host}`: {reason}; name an address of this machine.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UserError(_why_not(error, host, port)) from error
    return listening


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"`port={port}` is in use at {host}; give another one, or 0 for any that is free."
    if error.errno == errno.EACCES:
        return f"`port={port}` is not allowed ({reason_of(error)}); give one from 1024 on."
    return f"`host={host}`: {reason_of(error)}; name an address of this machine."


def _allow_files(count: int) -> None:
    """Lets this process open as many files as it may have connections, if the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _uvicorn_config(app: Starlette, config: ServerConfig) -> uvicorn.Config:
    protocol = type(
        "Bounded",
        (BoundedProtocol,),
        {
            "read_seconds": config.read_seconds,
            "idle_seconds": config.idle_seconds,
            "most_connections": config.max_connections,
        },
    )
    return uvicorn.Config(
        app,
        http=protocol,
        h11_max_incomplete_event_size=MOST_HEAD,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=max(1, round(config.idle_seconds)),
        timeout_graceful_shutdown=max(1, round(config.stop_seconds)),
    )


class _Server(uvicorn.Server):
    """uvicorn's server with our stops: a signal that was heeded is not raised again."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Inside the block a stop ends the server, unless the process ignores it."""
        heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end; a second Ctrl-C ends it at once."""
        if self.should_exit and sig == signal.SIGINT:
            sys.stderr.write("\nEnded at once.\n")
            os._exit(128 + sig)
        self._app.state.service.stopping = True
        super().handle_exit(sig, frame)


@contextlib.contextmanager
def _quiet_about_foreign_faults() -> Iterator[None]:
    """Lets uvicorn log failures only: what is no HTTP is the sender's business."""
    logger = logging.getLogger("uvicorn.error")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
