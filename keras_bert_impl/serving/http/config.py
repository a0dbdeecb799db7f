"""What a server can be told: where it listens, who may ask, and how much it takes on."""

import contextlib
import dataclasses
import ipaddress
import os
import re
import ssl
from pathlib import Path
from typing import Any

from keras_bert_impl.backend import need_extra
from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import read_small
from keras_bert_impl.options import Options, option

API_KEY_VARIABLE = "KERAS_BERT_API_KEY"
"""The environment variable that may hold the API key."""

_PACKAGES = ("starlette", "uvicorn", "orjson", "prometheus_client")
_KEY = re.compile(r"[\x21-\x7e]{1,512}")  # what a header can hold

STANDARD_OUTPUT, ANY = "-", "*"
"""In place of a file; in place of names."""

PORTS = {"http": ":80", "https": ":443"}
"""What browsers leave out of addresses."""

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s,@?#]+", re.IGNORECASE)
_NAME = re.compile(r"[^/\s,\[\]:*@?#]+")

# A day in seconds; the system's clocks refuse far larger ones.
_SECONDS: dict[str, Any] = {"more_than": 0, "at_most": 24 * 3600.0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerConfig(Options):
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
    allowed_hosts: tuple[str, ...] = option(
        (),
        "Names by which clients may call the server (Host), beside those of this machine; * for "
        "any. By default none where it listens on this machine only, and any elsewhere.",
    )
    allowed_origins: tuple[str, ...] = option(
        (),
        "Pages that may ask the server from a browser, as https://example.com; * for any. By "
        "default only its own.",
    )
    certfile: Path | None = option(
        None, "A certificate in PEM form; with it the server speaks https."
    )
    keyfile: Path | None = option(
        None, "The certificate's private key in PEM form; by default in the same file."
    )
    access_log: str | None = option(
        None,
        "A file to which each request adds a line of JSON, without texts; - for standard output.",
    )
    max_waiting: int = option(
        2048,
        "How many instances (texts, pairs, questions) may wait for each signature of a model; what "
        "comes on top gets status 429. A request of more than 32 counts for a quarter of them at "
        "most. The last quarter is for requests that count for less, and its second half for those "
        "of up to 32, or of one text. All that waits may have 256 Mi characters together.",
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
        10.0, "How long the head of a request may take to arrive, and its body.", **_SECONDS
    )
    answer_seconds: float = option(
        60.0, "How long a request may wait for its answer; then it gets status 429.", **_SECONDS
    )
    idle_seconds: float = option(
        30.0, "After how long a connection on which nothing is asked is closed.", **_SECONDS
    )
    stop_seconds: float = option(
        30.0, "How long a stopped server answers what it has begun.", **_SECONDS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, values, is_one, example in (
            ("allowed_hosts", self.allowed_hosts, _is_host, "example.com, without a port"),
            ("allowed_origins", self.allowed_origins, _ORIGIN.fullmatch, "https://example.com"),
        ):
            for one in values:
                if one != ANY and not is_one(one):
                    raise UserError(f"`{name}={one}`: is none; write it as {example}.")

    def origins(self) -> list[str]:
        """The pages that may ask, as browsers write them."""
        lower = [one.lower() for one in self.allowed_origins]
        return [one.removesuffix(PORTS.get(one.partition(":")[0], "")) for one in lower]

    def check_files(self) -> None:
        """Refuses a certificate that is none, and an access log that cannot be written."""
        if self.keyfile and not self.certfile:
            raise UserError("`keyfile` is without its certificate; give `certfile`, too.")
        try:
            if self.certfile:
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.load_cert_chain(self.certfile, self.keyfile, password=lambda: "")
        except (OSError, ValueError) as error:
            raise UserError(
                f"`certfile={self.certfile}`, `keyfile={self.keyfile or self.certfile}`: "
                f"{reason_of(error)}; name a certificate and its private key, both in PEM form "
                "and without a passphrase."
            ) from error
        try:
            if self.access_log not in (None, STANDARD_OUTPUT):
                os.close(open_access_log(self.access_log))
        except (OSError, ValueError) as error:
            raise UserError(
                f"`access_log={self.access_log}`: {reason_of(error)}; name a file that can be "
                "written to, or - for standard output."
            ) from error

    def key(self) -> str | None:
        """The API key: of the file, else the option, else the environment; None for none."""
        source, key = f"the environment's {API_KEY_VARIABLE}", os.environ.get(API_KEY_VARIABLE)
        if self.api_key is not None:
            source, key = "`api_key`", self.api_key
        if self.api_key_file is not None:
            needs = "no key needs; name the file that holds the API key"
            content = read_small(self.api_key_file, 1, needs, stream_or_empty=True)
            source, key = str(self.api_key_file), content.decode("utf-8", "replace").strip()
        if key is not None and not _KEY.fullmatch(key):
            wanted = "1 to 512 letters, digits or signs, without blanks"
            raise UserError(f"{source}: is no API key; give {wanted}.")
        return key


def open_access_log(path: str) -> int:
    """A file open for lines at its end; a pipe without a reader is refused, not waited for."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o640)


def need_server() -> None:
    """Refuses to begin where a package of the extra `serve` is not installed."""
    need_extra("serve", _PACKAGES, "serving")


def _is_host(name: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return bool(_NAME.fullmatch(name))


def is_of_this_machine_only(host: str) -> bool:
    """Whether other machines cannot reach an address.

    Example:
        >>> is_of_this_machine_only("127.0.0.1"), is_of_this_machine_only("0.0.0.0")
        (True, False)
    """
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
