"""A server's life: it listens, bounds what connections may do, and at a stop ends what it began."""

import asyncio
import contextlib
import fcntl
import functools
import http
import logging
import signal
import socket
import struct
import termios
from collections.abc import Iterator
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import allow_open_files
from keras_bert_impl.interrupts import STOPS, end_at_once, heard_by
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.wire import TAKEN

_LOGGER = logging.getLogger(__name__)

_BACKLOG = 4096  # connections that wait to be accepted
_LOOKS = 16  # at a slow reader, in the time after which one that takes nothing is cut
_MOST_HEAD = 64 << 10  # bytes that wait for their end; heads of the field have less than 2,000


def serve(app: Starlette, config: ServerConfig, listening: socket.socket, example: str) -> None:
    """Serves an application until a stop (`interrupts.STOPS`), and then finishes what was begun.

    A second Ctrl-C ends it at once. One line of the log says where it listens, and how curl asks.
    """
    allow_open_files(config.max_connections)
    host, port = listening.getsockname()[:2]
    shown_host = f"[{host}]" if ":" in host else host
    scheme = "https" if config.certfile else "http"
    address = f"{scheme}://{shown_host}:{port}"
    _LOGGER.info("Listening at %s (Ctrl-C stops); try: curl %s%s", address, address, example)
    settings = uvicorn.Config(
        app,
        http=type("Bounded", (BoundedProtocol,), {"bounds": config}),
        h11_max_incomplete_event_size=_MOST_HEAD,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=logging.ERROR,  # what is no HTTP is the sender's business
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        ssl_certfile=config.certfile,
        ssl_keyfile=config.keyfile,
        timeout_keep_alive=max(1, round(config.idle_seconds)),
        timeout_graceful_shutdown=max(1, round(config.stop_seconds)),
    )
    _Server(settings, config.read_seconds).run(sockets=[listening])
    if cut_off := app.state.service.cut_off:
        _LOGGER.warning("Stopped; of the requests that were begun %d were cut off.", cut_off)
    else:
        _LOGGER.info("Stopped; what was begun is answered.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError, TypeError) as error:
        raise UserError(
            f"`host={host}`, `port={port}`: {reason_of(error)}; name an address of this machine, "
            "and a port that is free and from 1024 on, or 0 for any."
        ) from error


class _Server(uvicorn.Server):
    """uvicorn's server with our stops: a signal that was heeded is not raised again."""

    def __init__(self, config: uvicorn.Config, handshake_seconds: float) -> None:
        super().__init__(config)
        self._handshake_seconds = handshake_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens; a handshake has the time of a head, which uvicorn cannot be told."""
        loop = asyncio.get_running_loop()
        if self.config.is_ssl:
            loop.create_server = functools.partial(  # type: ignore[method-assign]
                loop.create_server, ssl_handshake_timeout=self._handshake_seconds
            )
        await super().startup(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Inside the block a stop ends the server, unless the process ignores it."""
        heeded = [one for one in STOPS if signal.getsignal(one) is not signal.SIG_IGN]
        with heard_by(self.handle_exit, heeded):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end; a second Ctrl-C ends it at once."""
        if self.should_exit and sig == signal.SIGINT:
            end_at_once(sig)
        self.config.app.state.service.stopping = True  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 of which a head has a bound in time, and the reader of an answer, too.

    uvicorn bounds none of them; h11 bounds heads in bytes, the application bodies. uvicorn's other
    protocol, of httptools, loses the body of a request that wishes for HTTP/2, as Java's does.
    """

    bounds = ServerConfig()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._is_cut = False
        self.app_state = {**self.app_state, TAKEN: self._taken}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to count the seconds of the first head."""
        super().connection_made(transport)
        # Whatever the reader leaves is counted as waiting for it, not only from 64 KiB on. (With
        # 0 a TLS transport waits for nothing.)
        transport.set_write_buffer_limits(high=1, low=0)
        if len(self.connections) > self.bounds.max_connections:
            transport.abort()
        else:
            self._count_head(begun=True)

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._head_timer)
        _stop(self._reader_timer)
        self._is_cut = self.flow.write_paused or not self._is_idle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on; what is no request, blank lines say, counts as the next head."""
        super().data_received(data)
        self._count_head(begun=True)

    def on_response_complete(self) -> None:
        """Counts the seconds of a head that began while this answer was made."""
        super().on_response_complete()
        self._count_head(begun=self._is_idle() and bool(self.conn.trailing_data[0]))

    def pause_writing(self) -> None:
        """An answer waits for its reader, but not for one that takes nothing."""
        super().pause_writing()
        _stop(self._reader_timer)
        self._watch_reader(-1, self.loop.time())

    def resume_writing(self) -> None:
        _stop(self._reader_timer)
        super().resume_writing()

    def _watch_reader(self, left: int, since: float) -> None:
        """Cuts a reader that has taken nothing since the time when so many bytes were left."""
        before, left, now = left, self._bytes_left(), self.loop.time()
        since = since if left == before else now
        if now - since >= self.bounds.idle_seconds:
            self.transport.abort()
            return
        seconds = self.bounds.idle_seconds / _LOOKS
        self._reader_timer = self.loop.call_later(seconds, self._watch_reader, left, since)

    def _bytes_left(self) -> int:
        """What waits here and in the system, which hides a slow reader for some megabytes."""
        left = self.transport.get_write_buffer_size()
        with contextlib.suppress(OSError):  # a system that does not tell
            connection = self.transport.get_extra_info("socket")
            (queued,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
            left += queued
        return left

    async def _taken(self) -> bool:
        """Waits until the reader took the answer; False where the connection ended before."""
        await self.flow.drain()
        return not self._is_cut

    def send_400_response(self, msg: str) -> None:
        del msg
        self._refuse(400)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _count_head(self, begun: bool) -> None:
        """Counts the seconds of a head while no request is being answered."""
        if not self._is_idle() or self.transport.is_closing():
            _stop(self._head_timer)
            self._head_timer = None
        elif begun and self._head_timer is None:
            self._unset_keepalive_if_required()
            seconds = self.bounds.read_seconds
            self._head_timer = self.loop.call_later(seconds, self._refuse, 408)

    def _refuse(self, status: int) -> None:
        """Answers, unless an answer has begun, and closes."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            phrase = http.HTTPStatus(status).phrase.encode()
            head = b"HTTP/1.1 %d %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head % (status, phrase))
        if not self._is_idle():  # its body is none
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
