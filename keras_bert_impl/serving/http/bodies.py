"""Bodies are read within bounds, in bytes, in time and in depth; answers and faults are written."""

import asyncio
import dataclasses
import math
import re
import zlib
from typing import Any

import orjson  # a vector of 384 numbers takes 9 µs, and 480 with the standard library
from starlette.exceptions import HTTPException
from starlette.requests import Request

_AT_ONCE = 32  # entries of a list that are written at once
_BODIES_AT_ONCE = 16  # of the largest size: what all bodies that wait may hold together
_MOST_SIGNS = 200_000  # an empty list is two bytes of JSON and 56 of memory
_SIGNS = (b"[", b"{", b",")  # each begins a value
_PACKINGS = ("gzip", "x-gzip")
_MOST_MEMBERS = 16  # of a packed body, which usually is one
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class RequestError(HTTPException):
    """A request that is not answered; `detail` never holds a path of the machine."""

    def __init__(
        self,
        status_code: int,
        detail: str,
        *,
        code: str | None = None,
        parameter: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        later = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(status_code, detail, {**(headers or {}), **later})
        self.code, self.parameter = code, parameter


def bad_request(sentence: str, parameter: str | None = None) -> RequestError:
    """A request that is not as it must be: 400."""
    return RequestError(400, sentence, parameter=parameter)


def fault_body(fault: RequestError, openai: bool) -> dict[str, object]:
    """The JSON of a fault, in TensorFlow Serving's form or in OpenAI's."""
    if not openai:
        return {"error": fault.detail}
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    other = "invalid_request_error" if fault.status_code < 500 else "server_error"
    kind = kinds.get(fault.status_code, other)
    said = {"message": fault.detail, "type": kind, "param": fault.parameter, "code": fault.code}
    return {"error": said}


@dataclasses.dataclass
class BodyReader:
    """Reads bodies, of which all together have bounds."""

    seconds: float
    mebibytes: int = 16
    held: int = 0

    async def json(self, request: Request) -> Any:
        packing = request.headers.get("content-encoding", "").lower()
        if packing not in ("", "identity", *_PACKINGS):
            fault = "the body is packed in a way that is not read here"
            remedy, headers = "send it as it is, or as gzip", {"Accept-Encoding": "gzip"}
            raise RequestError(415, f"{fault}; {remedy}.", headers=headers)
        # More digits than a machine counts in come as text, too.
        length, most = request.headers.get("content-length", "0"), self.mebibytes << 20
        if len(length) > len(str(most)) or int(length) > most:
            raise self._too_large()
        content = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                async for chunk in request.stream():
                    content += chunk
                    self.held += len(chunk)
                    if len(content) > most:
                        raise self._too_large()
                    if self.held > most * _BODIES_AT_ONCE:
                        said = "too much is sent at once; ask again later."
                        raise RequestError(429, said, retry_after=1)
            packed = packing in _PACKINGS
            return _parsed(await asyncio.to_thread(self._unpacked, content) if packed else content)
        except TimeoutError:
            sentence = f"the body did not arrive within {self.seconds:g} seconds."
            raise RequestError(408, sentence, headers={"Connection": "close"}) from None
        finally:
            self.held -= len(content)

    def _unpacked(self, content: bytearray) -> bytearray:
        """What was packed; no more is unpacked than a body may have."""
        most, unpacked, rest = self.mebibytes << 20, bytearray(), bytes(content)
        for _ in range(_MOST_MEMBERS):
            member = zlib.decompressobj(wbits=31)
            try:
                unpacked += member.decompress(rest, most + 1 - len(unpacked))
            except zlib.error:
                break
            if len(unpacked) > most:
                raise self._too_large()
            rest = member.unused_data.lstrip(b"\0")  # which may fill it up
            if member.eof and not rest:
                return unpacked
            if not member.eof:
                break
        else:
            raise bad_request(
                f"the body is packed in more than {_MOST_MEMBERS} pieces; pack it in one."
            )
        raise bad_request("the body is not whole gzip, as its head says.")

    def _too_large(self) -> RequestError:
        return RequestError(413, f"the body has more than {self.mebibytes} MiB; send it in parts.")


def _parsed(content: bytes | bytearray) -> Any:
    if _signs_of(content) > _MOST_SIGNS and _signs_of(_TEXT.sub(b"", content)) > _MOST_SIGNS:
        # Little JSON may take much memory.
        raise RequestError(413, "the body has too many values; send it in parts.")
    try:
        return orjson.loads(content)
    except ValueError as error:
        raise bad_request(f"the body is not JSON ({error}); send a JSON object.") from None


def _signs_of(content: bytes | bytearray) -> int:
    return sum(map(content.count, _SIGNS))


def to_json(value: Any) -> bytes:
    """JSON in UTF-8; a number that is not finite is a `ValueError`."""
    if isinstance(value, dict) and any(map(_is_long, value.values())):
        entries = (orjson.dumps(name) + b":" + to_json(one) for name, one in value.items())
        return b"{" + b",".join(entries) + b"}"
    if _is_long(value):  # other threads run in between
        starts = range(0, len(value), _AT_ONCE)
        return b"[" + b",".join(to_json(value[at : at + _AT_ONCE])[1:-1] for at in starts) + b"]"
    text = orjson.dumps(value)
    if b"null" in text and not _is_finite(value):  # which is what NaN becomes
        raise ValueError("a number is not finite")
    return text


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > _AT_ONCE and isinstance(value[0], dict | list)


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
