"""Connections of clients that mean no good: endless heads, slow drops, unread answers, too many."""

import asyncio
import http
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_bert_impl.serving.http.bodies import to_json

MOST_HEAD = 64 << 10  # bytes that wait for their end; heads of the field have less than 2,000
_FAULTS = {
    400: "this is no well-formed HTTP request.",
    408: "the head of the request did not arrive in time.",
    431: "the head of the request is too large.",
}


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 of which a head has a bound in time, and the reader of an answer, too.

    uvicorn bounds none of them; h11 bounds heads in bytes, the application bodies. uvicorn's other
    protocol, of httptools, loses the body of a request that wishes for HTTP/2, as Java's does.

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
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to count the seconds of the first head."""
        super().connection_made(transport)
        # Whatever the reader leaves is counted as waiting for it, not only from 64 KiB on.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.most_connections:
            transport.abort()
        else:
            self._count_head(begun=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops counting."""
        _stop(self._head_timer)
        _stop(self._reader_timer)
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
        """An answer waits for its reader, but not for ever."""
        super().pause_writing()
        _stop(self._reader_timer)
        self._reader_timer = self.loop.call_later(self.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It is read."""
        _stop(self._reader_timer)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Tells that something is no HTTP; called while h11's exception is handled."""
        del msg
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(hint if hint in _FAULTS else 400)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _count_head(self, begun: bool) -> None:
        """Counts the seconds of a head while no request is being answered."""
        if not self._is_idle() or self.transport.is_closing():
            _stop(self._head_timer)
            self._head_timer = None
        elif begun and self._head_timer is None:
            self._unset_keepalive_if_required()
            self._head_timer = self.loop.call_later(self.read_seconds, self._refuse, 408)

    def _refuse(self, status: int) -> None:
        """Answers with a sentence, unless an answer has begun, and closes."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = to_json({"error": _FAULTS[status]})
            self.transport.write(
                b"HTTP/1.1 %d %b\r\n" % (status, http.HTTPStatus(status).phrase.encode())
                + b"content-type: application/json\r\nconnection: close\r\n"
                + b"content-length: %d\r\n\r\n%b" % (len(body), body)
            )
        if not self._is_idle():  # its body is none
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
