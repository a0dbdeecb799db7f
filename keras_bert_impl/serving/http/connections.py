"""Connections of clients that mean no good: endless heads, slow drops, unread answers, too many."""

import asyncio
import contextlib
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from keras_bert_impl.serving.http.bodies import to_json

_MOST_HEAD = 64 << 10  # bytes; those of the field have less than two thousand
_FAULTS = {
    400: "this is no well-formed HTTP request.",
    408: "the head of the request did not arrive in time.",
    431: "the head of the request is too large.",
}


class _PlainParser:
    """httptools' parser of requests, which speaks no other protocol whatever a head wishes for.

    It alone takes all behind such a head for the other protocol. A server may ignore the wish, and
    Java's client, which wishes for HTTP/2 in each first request, goes on as if it had none.
    """

    def __init__(self, protocol: "BoundedProtocol") -> None:
        self._protocol = protocol
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def _begin(self) -> None:
        self._parser = httptools.HttpRequestParser(self._protocol)
        with contextlib.suppress(AttributeError):  # as uvicorn: a body that is cut is answered
            self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: bytes) -> None:
        """Reads on."""
        while True:
            try:
                return self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:
                data = self._head_without_wish() + data[wish.args[0] :]
                self._begin()

    def _head_without_wish(self) -> bytes:
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        headers = [b"%b: %b\r\n" % one for one in self._protocol.headers if one[0] != b"upgrade"]
        first = b"%b %b HTTP/%b\r\n" % (method, self._protocol.url, version)
        return first + b"".join(headers) + b"\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 of which a head has a bound in bytes and in time, and the reader of an answer, too.

    uvicorn bounds none of them; bodies are bounded by the application.

    Attributes:
        read_seconds: how long a head may take.
        idle_seconds: how long a client may read nothing of an answer that waits for it.
        most_connections: those on top are closed at once.
    """

    read_seconds = 10.0
    idle_seconds = 30.0
    most_connections = 8192

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = _PlainParser(self)
        self._head_bytes = 0
        self._in_head = True
        self._has_ended = False  # a request, in the data that is read now
        self._next_has_begun = False  # a head, after the last whole one
        self._fault = 400
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._cycles = list[RequestResponseCycle]()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to count the seconds of the first head."""
        super().connection_made(transport)
        # Whatever the reader leaves is counted as waiting for it, not only from 64 KiB on.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops counting, and tells all requests of the connection that nobody listens."""
        self._head_is_there()
        self._is_read()
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on, unless the head has grown too large."""
        self._has_ended = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and not self._has_ended:  # else most of it may be the request before
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD:
                self._refuse(431)
        if self._is_idle():  # whatever this was, no request is being answered
            self._await_head()

    def pause_writing(self) -> None:
        """An answer waits for its reader, but not for ever."""
        super().pause_writing()
        self._is_read()
        self._unread = self.loop.call_later(self.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It is read."""
        self._is_read()
        super().resume_writing()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes, self._next_has_begun = True, 0, True

    def on_headers_complete(self) -> None:
        """A head is there."""
        if sum(len(name) + len(value) for name, value in self.headers) > _MOST_HEAD:
            self._fault = 431
            raise ValueError("the head is too large")  # `send_400_response` answers
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("a tunnel")
        if self.parser.should_upgrade():
            return  # it comes again without that wish
        super().on_headers_complete()
        self._in_head = self._next_has_begun = False
        self._head_is_there()
        self._unanswered().append(self.cycle)

    def on_message_complete(self) -> None:
        """A request is there; what comes next is the head of another one."""
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._in_head, self._head_bytes, self._has_ended = True, 0, True

    def on_response_complete(self) -> None:
        """Counts the seconds of a head that began while this answer was made."""
        super().on_response_complete()
        if self._next_has_begun and self._is_idle() and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Tells that something is no HTTP."""
        del msg
        self._refuse(self._fault)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _unanswered(self) -> list[RequestResponseCycle]:
        """Requests in one go, of which uvicorn itself remembers the last."""
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete]
        return self._cycles

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.read_seconds, self._refuse, 408)

    def _head_is_there(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int) -> None:
        """Answers with a sentence and closes; whole requests in front of it are answered first."""
        self._head_is_there()
        if self.transport.is_closing():
            return
        waiting = self._unanswered()
        if waiting and (self._in_head or len(waiting) > 1):
            waiting[-1 if self._in_head else -2].keep_alive = False
            return
        if self._in_head or any(not cycle.response_started for cycle in waiting):
            self._write_fault(status)
        for cycle in waiting:  # whose body is none
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _write_fault(self, status: int) -> None:
        body = to_json({"error": _FAULTS[status]})
        self.transport.write(
            STATUS_LINE[status] + b"content-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
