"""Who may ask: requests without the API key are turned away before anything is read."""

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_bert_impl.serving.http.faults import RequestError


class ApiKey:
    """Lets only those in who send the key as `Authorization: Bearer KEY`."""

    def __init__(self, app: ASGIApp, key: str, open_paths: Iterable[str]) -> None:
        self._app, self._key = app, key.encode()
        self._open = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers 401."""
        if scope["type"] == "http" and scope["path"] not in self._open:
            given = Headers(scope=scope).get("authorization", "")
            kind, _, key = given.partition(" ")
            # The time of this comparison says nothing of how much of a key is right.
            right = hmac.compare_digest(key.strip().encode("utf-8", "replace"), self._key)
            if not right or kind.lower() != "bearer":
                raise RequestError(
                    401,
                    "the API key is missing or wrong; send it as `Authorization: Bearer KEY`.",
                    code="invalid_api_key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        await self._app(scope, receive, send)
