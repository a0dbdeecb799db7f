"""What every request passes: it has an id, may ask or not, is counted, and leaves a line."""

import asyncio
import datetime
import hmac
import logging
import os
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keras_bert_impl.errors import cut, reason_of, shown
from keras_bert_impl.serving.http.bodies import RequestError
from keras_bert_impl.serving.http.config import (
    ANY,
    STANDARD_OUTPUT,
    ServerConfig,
    is_of_this_machine_only,
    open_access_log,
)

REQUEST_ID, METHOD = "keras_bert.request_id", "keras_bert.method"
"""In a scope: the request's id; what it is counted as."""

TAKEN = "taken"
"""In a scope's state: waits for the answer's reader; False where that one took not all of it."""

CUT_OFF = 499
"""The status that proxies write where a client took no answer, or not all of it."""

HEALTH_PATHS = ("/healthz", "/readyz")
"""What anyone may ask by any name: they tell nothing and compute nothing."""

_LOGGER = logging.getLogger(__name__)
_ID = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
_PIECE = 64 << 10  # bytes of an answer: what is in TLS' hands is out of ours
_PORTS = {"http": ":80", "https": ":443"}


class Wire:
    """Gives requests an id, and tells what became of each.

    Args:
        log: takes lines; none where it is None.
        count: is told of each request that ended: its scope, its status, its seconds to the last
            byte that the reader took, and whether the server's stop cut it off.
        refuse: makes the answer of a fault.
    """

    def __init__(
        self,
        app: ASGIApp,
        log: str | None,
        count: Callable[[Scope, int, float, bool], None],
        refuse: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app, self._count, self._refuse = app, count, refuse
        self._log = AccessLog(log) if log else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, and its answer back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, size, is_stopped = time.perf_counter(), 0, 0, False
        given = Headers(scope=scope).get("x-request-id", "")
        scope[REQUEST_ID] = given if _ID.fullmatch(given) else uuid.uuid4().hex

        async def passing(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = scope[REQUEST_ID]
            body = message.get("body", b"")
            if len(body) <= _PIECE:
                await send(message)
                size += len(body)
                return
            for at in range(0, len(body), _PIECE):  # each waits for its reader
                piece, is_last = body[at : at + _PIECE], at + _PIECE >= len(body)
                more = message.get("more_body", False) or not is_last
                await send({**message, "body": piece, "more_body": more})
                size += len(piece)

        taken = scope.get("state", {}).get(TAKEN)
        is_taken = False
        try:
            await self._app(scope, receive, passing)
            is_taken = taken is None or await taken()
        except asyncio.CancelledError:  # a stopped server has waited long enough
            is_stopped, is_taken = True, not status
            if not status:
                fault = RequestError(503, "the server stops.", headers={"Connection": "close"})
                await (await self._refuse(Request(scope), fault))(scope, receive, passing)
        finally:
            seconds = time.perf_counter() - started
            if not is_taken:
                if status != CUT_OFF:  # else it was gone before there was an answer
                    self._tell(scope, f"the answer ({status}) was cut off after {seconds:.1f} s")
                status = CUT_OFF
            elif status >= 500:
                self._tell(scope, f"answered with {status}")
            self._count(scope, status, seconds, is_stopped)
            if self._log:
                self._log.write(scope, status, seconds, size)

    def _tell(self, scope: Scope, sentence: str) -> None:
        asked = f"{shown(scope['method'])} {shown(scope['path'])}"
        _LOGGER.warning("request %s: %s: %s.", scope[REQUEST_ID], asked, sentence)


class AccessLog:
    """A line of JSON a request; a file that is moved away begins anew, and a full disk is no end.

    No text of a client is in it, only paths.
    """

    def __init__(self, target: str) -> None:
        self._target, self._is_failing = target, False

    def write(self, scope: Scope, status: int, seconds: float, size: int) -> None:
        """Writes the line of a request that ended."""
        entry = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "request_id": scope[REQUEST_ID],
            "method": cut(scope["method"]),
            "path": cut(scope["path"]),
            "status": status,
            "seconds": round(seconds, 6),
            "bytes": size,
            "client": (scope.get("client") or [None])[0],
        }
        try:
            self._append(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                reason = reason_of(error)
                _LOGGER.warning("%s: %s; the access log lacks requests.", self._target, reason)
            self._is_failing = True

    def _append(self, line: bytes) -> None:
        if self._target == STANDARD_OUTPUT:
            os.write(1, line)
            return
        file = open_access_log(self._target)
        try:
            os.write(file, line)
        finally:
            os.close(file)


class Guard:
    """Lets in who calls the server by a name of its own, from no foreign page, with the key.

    A browser sends what pages make it send; a page whose name suddenly leads to this machine (DNS
    rebinding) is told by the name, and a page of another origin by what browsers say of it.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig, open_paths: Collection[str]) -> None:
        self._app, self._open = app, open_paths
        self._key = (config.key() or "").encode()
        self._origins = {one.lower() for one in config.allowed_origins}
        self._hosts = {config.host.lower(), *(one.lower() for one in config.allowed_hosts)}
        if not config.allowed_hosts and not is_of_this_machine_only(config.host):
            self._hosts.add(ANY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on that may ask."""
        if scope["type"] == "http" and scope["path"] not in HEALTH_PATHS:
            headers = Headers(scope=scope)
            scope[METHOD] = "refused"
            self._check_host(headers.get("host", ""))
            self._check_page(scope["method"], headers)
            if scope["path"] not in self._open:
                self._check_key(headers.get("authorization", ""))
            del scope[METHOD]
        await self._app(scope, receive, send)

    def _check_host(self, given: str) -> None:
        host = _name_in(given)
        # HTTP/1.0 knows no Host; every browser sends one.
        if given and not is_of_this_machine_only(host) and not {ANY, host} & self._hosts:
            raise RequestError(
                403,
                f"{shown(given)} is no name of this server; its owner may add it to "
                "`allowed_hosts`.",
            )

    def _check_page(self, method: str, headers: Headers) -> None:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin", "").lower()
        if ANY in self._origins or origin in self._origins or site == "same-origin":
            return
        is_foreign = site not in (None, "none")
        if origin:
            host = headers.get("host", "").lower()
            scheme, _, name = origin.partition("://")
            port = _PORTS.get(scheme, "")
            is_foreign = name.removesuffix(port) != host.removesuffix(port)
        elif is_foreign and method in ("GET", "HEAD"):
            # A link may lead here: the page that has it sees nothing of what is behind it.
            is_foreign = headers.get("sec-fetch-dest") != "document"
        if is_foreign:
            raise RequestError(
                403,
                f"a page of {shown(origin or 'another origin')} may not ask this server; its owner "
                "may add it to `allowed_origins`.",
            )

    def _check_key(self, header: str) -> None:
        kind, _, given = header.partition(" ")
        # The time of this comparison says nothing of how much of a key is right.
        right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._key)
        if self._key and not (right and kind.lower() == "bearer"):
            raise RequestError(
                401,
                "the API key is missing or wrong; send it as `Authorization: Bearer KEY`.",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )


def _name_in(host: str) -> str:
    """The name in a Host, without its port; "" where there is none.

    Example:
        >>> _name_in("Localhost:8501"), _name_in("[::1]:8501"), _name_in("[")
        ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
