"""Bodies are read within bounds, in bytes, in time and in depth; answers and faults are written."""

import asyncio
import dataclasses
import math
import re
from typing import Any

from starlette.requests import Request

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import parse_json

_BODIES_AT_ONCE = 16  # of the largest size: what all bodies that wait may hold together
_MOST_SIGNS = 200_000  # an empty list is two bytes of JSON and 56 of memory
_SIGNS = (b"[", b"{", b",")  # each begins a value
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SMALL = 64 << 10  # bytes that are read as JSON in less than a millisecond


class RequestError(Exception):
    """A request that is not answered.

    Args:
        sentence: what is wrong, and what to do; never a path of the machine.
        retry_after: in how many seconds to try again.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        code: str | None = None,
        parameter: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.code, self.parameter = code, parameter
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)


def bad_request(sentence: str, parameter: str | None = None) -> RequestError:
    """A request that is not as it must be: 400.

    Example:
        >>> bad_request("`instances` is empty; give at least one.").status
        400
    """
    return RequestError(400, sentence, parameter=parameter)


def fault_body(fault: RequestError, openai: bool) -> dict[str, object]:
    """The JSON of a fault, in TensorFlow Serving's form or in OpenAI's.

    Example:
        >>> fault_body(bad_request("`input` is empty.", "input"), openai=False)
        {'error': '`input` is empty.'}
        >>> fault_body(bad_request("`input` is empty.", "input"), openai=True)["error"]["type"]
        'invalid_request_error'
    """
    if not openai:
        return {"error": fault.sentence}
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(
        fault.status, "invalid_request_error" if fault.status < 500 else "server_error"
    )
    return {
        "error": {
            "message": fault.sentence,
            "type": kind,
            "param": fault.parameter,
            "code": fault.code,
        }
    }


@dataclasses.dataclass
class BodyReader:
    """Reads bodies, of which all together have bounds.

    Attributes:
        seconds: how long a body may take to arrive.
        mebibytes: the largest body.
        held: bytes of the bodies that are read or waited on now.
    """

    seconds: float
    mebibytes: int = 16
    held: int = 0
    _turn: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)

    async def json(self, request: Request) -> Any:
        """Reads the JSON value of a request."""
        self._check_head(request)
        content = bytearray()
        try:
            await self._receive(request, content)
            if len(content) <= _SMALL:
                return _parsed(content)
            # The loop reads at most one large body in a turn, however many are there: clients and
            # deadlines are not to wait for all of them.
            async with self._turn:
                await asyncio.sleep(0)
                return _parsed(content)
        finally:
            self.held -= len(content)

    def _check_head(self, request: Request) -> None:
        if request.headers.get("content-encoding", "").lower() not in ("", "identity"):
            raise RequestError(415, "the body is packed; send it as it is.")
        # More digits than a machine counts in come as text, too.
        length, most = request.headers.get("content-length", "0"), self.mebibytes << 20
        if len(length) > len(str(most)) or int(length) > most:
            raise self._too_large()

    async def _receive(self, request: Request, content: bytearray) -> None:
        """Adds a body to what there is of it, and to what is held."""
        most = self.mebibytes << 20
        try:
            async with asyncio.timeout(self.seconds):
                async for chunk in request.stream():
                    content += chunk
                    self.held += len(chunk)
                    if len(content) > most:
                        raise self._too_large()
                    if self.held > most * _BODIES_AT_ONCE:
                        raise RequestError(
                            429, "too much is sent at once; ask again later.", retry_after=1
                        )
        except TimeoutError:
            sentence = f"the body did not arrive within {self.seconds:g} seconds."
            raise RequestError(408, sentence, headers={"Connection": "close"}) from None

    def _too_large(self) -> RequestError:
        sentence = f"the body has more than {self.mebibytes} MiB; send it in parts."
        # The rest is read and thrown away for a while: a client that sends on reads no answer.
        return RequestError(413, sentence)


def _parsed(content: bytearray) -> Any:
    _check_values(content)
    try:
        return parse_json(bytes(content), "the body", "send a JSON object", finite=True)
    except UserError as error:
        raise bad_request(str(error)) from None


def _check_values(content: bytes | bytearray) -> None:
    """Refuses values without number: little JSON may take much memory, and long to read."""
    if _signs_of(content) > _MOST_SIGNS and _signs_of(_TEXT.sub(b"", content)) > _MOST_SIGNS:
        raise RequestError(413, "the body has too many values; send it in parts.")


def _signs_of(content: bytes | bytearray) -> int:
    return sum(map(content.count, _SIGNS))


def to_json(value: Any) -> bytes:
    """JSON in UTF-8.

    Example:
        >>> to_json({"score": 0.5})
        b'{"score":0.5}'
        >>> to_json([float("nan")])
        Traceback (most recent call last):
        ...
        ValueError: a number is not finite
    """
    import orjson  # a vector of 384 numbers takes 9 µs, and 480 with the standard library

    text = orjson.dumps(value)
    if b"null" in text and not _is_finite(value):  # which is what NaN becomes
        raise ValueError("a number is not finite")
    return text


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
