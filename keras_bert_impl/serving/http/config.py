"""What a server can be told: where it listens, who may ask, and how much it takes on."""

import contextlib
import dataclasses
import ipaddress
import os
import re
from pathlib import Path

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import read_small
from keras_bert_impl.options import check_options, option

API_KEY_VARIABLE = "KERAS_BERT_API_KEY"
"""The environment variable that may hold the API key."""

_PACKAGES = ("starlette", "uvicorn", "orjson", "prometheus_client")
_KEY = re.compile(r"[\x21-\x7e]{1,512}")  # what a header can hold

_A_DAY = 24 * 3600.0  # seconds; the system's clocks refuse far larger ones


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Where a server listens, who may ask, and how much it takes on."""

    host: str = option(
        "127.0.0.1", "The address to listen on; 0.0.0.0 or :: lets other machines ask, too."
    )
    port: int = option(8501, "The port; 0 for any free one.", at_least=0, at_most=65535)
    api_key: str | None = option(
        None,
        "A key that requests must have (Authorization: Bearer KEY). All users of the machine can "
        "see a command line; api_key_file, or the environment's KERAS_BERT_API_KEY, is safer.",
    )
    api_key_file: Path | None = option(None, "A file that holds the key.")
    max_waiting: int = option(
        2048,
        "How many instances (texts, pairs, questions) may wait; what comes on top gets status "
        "429. A request of more than 32 counts for a quarter of them at most, and a quarter is for "
        "smaller requests only, which wait for no larger ones.",
        at_least=1,
    )
    cache_mebibytes: int = option(
        0,
        "How much memory holds answers for whoever asks the same again; 0 for none. What was not "
        "asked for longest goes first.",
        at_least=0,
        at_most=1 << 20,
    )
    max_connections: int = option(8192, "The most open connections.", at_least=1, at_most=65536)
    read_seconds: float = option(
        10.0,
        "How long the head of a request may take to arrive, and its body.",
        more_than=0,
        at_most=_A_DAY,
    )
    answer_seconds: float = option(
        60.0,
        "How long a request may wait for its answer; then it gets status 429.",
        more_than=0,
        at_most=_A_DAY,
    )
    idle_seconds: float = option(
        30.0,
        "After how long a connection on which nothing is asked is closed.",
        more_than=0,
        at_most=_A_DAY,
    )
    stop_seconds: float = option(
        30.0,
        "How long a stopped server answers what it has begun.",
        more_than=0,
        at_most=_A_DAY,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def key(self) -> str | None:
        """The API key: of the file, else the option, else the environment; None for none."""
        source, key = f"the environment's {API_KEY_VARIABLE}", os.environ.get(API_KEY_VARIABLE)
        if self.api_key is not None:
            source, key = "`api_key`", self.api_key
        if self.api_key_file is not None:
            source, key = str(self.api_key_file), _key_in(self.api_key_file)
        if key is not None and not _KEY.fullmatch(key):
            raise UserError(
                f"{source}: is no API key; give 1 to 512 letters, digits or signs, without blanks."
            )
        return key


def _key_in(file: Path) -> str:
    content = read_small(
        file, 1, "no key needs; name the file that holds the API key", stream_or_empty=True
    )
    return content.decode("utf-8", "replace").strip()


def need_server() -> None:
    """Refuses to begin where a package of the extra `serve` is not installed."""
    need_extra("serve", _PACKAGES, "serving")


def is_of_this_machine_only(host: str) -> bool:
    """Whether other machines cannot reach an address.

    Example:
        >>> is_of_this_machine_only("127.0.0.1"), is_of_this_machine_only("0.0.0.0")
        (True, False)
    """
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
