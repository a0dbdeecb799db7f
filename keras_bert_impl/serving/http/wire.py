"""What every request passes: it has an id, may ask or not, is counted, and leaves a line."""

import asyncio
import contextlib
import datetime
import errno
import hmac
import ipaddress
import logging
import os
import re
import select
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keras_bert_impl.errors import cut, reason_of, shown
from keras_bert_impl.serving.http.bodies import RequestError, to_json
from keras_bert_impl.serving.http.config import (
    ANY,
    PORTS,
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
_PIECE = 64 << 10  # bytes of an answer; of TLS' own buffers no more can be seen
_NO_NAME = re.compile("[/@?#]")  # what would be read as other parts of an address


class Wire:
    """Gives requests an id, and tells what became of each.

    `count` is told of each request that ended: its scope, its status, its seconds until the system
    had its last byte, and whether the server's stop cut it off. `refuse` answers a fault.
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
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        scope[REQUEST_ID] = given if _ID.fullmatch(given) else uuid.uuid4().hex
        answer, started = _Answer(scope[REQUEST_ID], send), time.perf_counter()
        is_taken = is_stopped = False
        try:
            await self._app(scope, receive, answer.send)
            taken = scope.get("state", {}).get(TAKEN)
            is_taken = taken is None or await taken()
        except asyncio.CancelledError:  # a stopped server has waited long enough
            is_stopped, is_taken = True, not answer.status
            if is_taken:
                fault = RequestError(503, "the server stops.", headers={"Connection": "close"})
                await (await self._refuse(Request(scope), fault))(scope, receive, answer.send)
        finally:
            seconds = time.perf_counter() - started
            status = self._told(scope, answer.status, is_taken, seconds)
            self._count(scope, status, seconds, is_stopped)
            if self._log:
                self._log.write(scope, status, seconds, answer.size)

    def _told(self, scope: Scope, status: int, is_taken: bool, seconds: float) -> int:
        """What became of an answer, of which the log tells failures."""
        asked = f"request {scope[REQUEST_ID]}: {shown(scope['method'])} {shown(scope['path'])}"
        if is_taken:
            if status >= 500 and status != 503:  # which probes get, too
                _LOGGER.warning("%s: answered with %d.", asked, status)
            return status
        if status != CUT_OFF:  # else its client was gone before there was an answer
            _LOGGER.warning("%s: the answer (%d) was cut off at %.1f s.", asked, status, seconds)
        return CUT_OFF


class _Answer:
    """An answer on its way: its status, 0 before it begins, and its bytes."""

    def __init__(self, request_id: str, send: Send) -> None:
        self._id, self._send = request_id, send
        self.status = self.size = 0

    async def send(self, message: Message) -> None:
        """Sends it on, with the id, in pieces of which each waits for its reader."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-ID"] = self._id
        left = memoryview(message.get("body", b""))
        while len(left) > _PIECE:
            await self._send({**message, "body": bytes(left[:_PIECE]), "more_body": True})
            self.size, left = self.size + _PIECE, left[_PIECE:]
        await self._send({**message, "body": bytes(left)} if left else message)
        self.size += len(left)


class AccessLog:
    """A line of JSON a request; a file that is moved away begins anew, and a full disk is no end.

    No text of a client is in it, only paths.
    """

    def __init__(self, target: str) -> None:
        self._target, self._is_failing = target, False

    def write(self, scope: Scope, status: int, seconds: float, size: int) -> None:
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
            self._append(to_json(entry) + b"\n")
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                reason = reason_of(error)
                _LOGGER.warning("%s: %s; the access log lacks requests.", self._target, reason)
            self._is_failing = True

    def _append(self, line: bytes) -> None:
        if self._target == STANDARD_OUTPUT:
            # Others may write there, too, so that it cannot be made not to wait.
            if not select.select([], [1], [], 0)[1]:
                raise BlockingIOError(errno.EAGAIN, "its reader takes nothing")
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
        self._origins = {*config.origins()}
        self._hosts = {*map(_plain, (config.host, *config.allowed_hosts))}
        if not config.allowed_hosts and not is_of_this_machine_only(config.host):
            self._hosts.add(ANY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        is_ours = is_of_this_machine_only(host) or {ANY, host} & self._hosts
        if given and not (host and is_ours):
            remedy = "its owner may add it to `allowed_hosts`"
            raise RequestError(403, f"{shown(given)} is no name of this server; {remedy}.")

    def _check_page(self, method: str, headers: Headers) -> None:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin", "").lower()
        if ANY in self._origins or origin in self._origins or site == "same-origin":
            return
        is_foreign = site not in (None, "none")
        if origin:
            host = headers.get("host", "").lower()
            scheme, _, name = origin.partition("://")
            port = PORTS.get(scheme, "")
            is_foreign = name.removesuffix(port) != host.removesuffix(port)
        elif is_foreign and method in ("GET", "HEAD"):
            # A link may lead here: the page that has it sees nothing of what is behind it.
            is_foreign = headers.get("sec-fetch-dest") != "document"
        if is_foreign:
            page = f"a page of {shown(origin or 'another origin')} may not ask this server"
            raise RequestError(403, f"{page}; its owner may add it to `allowed_origins`.")

    def _check_key(self, header: str) -> None:
        kind, _, given = header.partition(" ")
        # The time of this comparison says nothing of how much of a key is right.
        right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._key)
        if self._key and not (right and kind.lower() == "bearer"):
            fault = "the API key is missing or wrong; send it as `Authorization: Bearer KEY`."
            wanted = {"WWW-Authenticate": "Bearer"}
            raise RequestError(401, fault, code="invalid_api_key", headers=wanted)


def _name_in(host: str) -> str:
    """The name in a Host, without its port; "" where there is none.

    Example:
        >>> _name_in("Localhost.:8501"), _name_in("[::1]:8501"), _name_in("["), _name_in("a/b")
        ('localhost', '::1', '', '')
    """
    with contextlib.suppress(ValueError):
        if not _NO_NAME.search(host):
            return _plain(urlsplit(f"//{host}").hostname or "")
    return ""


def _plain(name: str) -> str:
    """A name or an address in the one form that is compared."""
    name = name.lower().rstrip(".")
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name))
    return name
