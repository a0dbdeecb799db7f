"""Requests to an ASGI application in this process, without sockets."""

import asyncio
import contextlib
import json


class Reply:
    """What came back: `status`, `headers`, `body`."""

    def __init__(self, messages):
        start = messages[0]
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(one.get("body", b"") for one in messages[1:])

    def json(self):
        """The value of a JSON body."""
        return json.loads(self.body, parse_constant=_refuse)


def _refuse(name):
    raise AssertionError(f"{name} is no JSON")


async def request(app, method, path, body=b"", headers=(), gone=None, chunks=None):
    """Asks an application.

    Args:
        app: the application.
        method: HTTP's.
        path: of the request.
        body: bytes, or a value for JSON.
        headers: pairs of texts.
        gone: an event; when it is set, the client goes away.
        chunks: an async iterator of bytes, in place of the body.
    """
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = []

    async def parts():
        yield body

    source = (chunks or parts()).__aiter__()
    ended = asyncio.Event()

    async def receive():
        if not ended.is_set():
            with contextlib.suppress(StopAsyncIteration):
                return {"type": "http.request", "body": await anext(source), "more_body": True}
            ended.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8501),
        "state": {},
    }
    await app(scope, receive, send)
    return Reply(sent)


def ask(app, method, path, body=b"", headers=()):
    """`request`, in an event loop of its own."""
    return asyncio.run(request(app, method, path, body, headers))
