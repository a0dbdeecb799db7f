"""Reads files as blocks of lines of UTF-8: unpacks, recodes and composes them on the way.

A packed file is recognised by its first bytes, because names lie. Text in another encoding is
recoded a block after the other, so that lines and positions know of one encoding only.

Memory is bounded whatever a file holds: a line has at most `MOST_LINE_BYTES`, a file that is read
at once `MOST_WHOLE_BYTES`, and what unpacks to far more than any text does (`MOST_TIMES`) is
refused. Text that is read once may come through a pipe.
"""

import bz2
import codecs
import contextlib
import functools
import gzip
import io
import itertools
import logging
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import MOST_LINE_BYTES, line_too_long, open_input, own_descriptor
from keras_bert_impl.options import Options, option
from keras_bert_impl.tokenization.reference import composed
from keras_bert_impl.tokenization.text_settings import AS_IS, NFC

_AT_ONCE = 1 << 16
_UTF_8 = "utf-8"
# Encodings that are often named where a wider one, with all of their characters, is meant.
_WIDER = {"euc_kr": "cp949", "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030"}
_STATEFUL = ("utf-7", "iso2022", "hz")  # a line end may be the same byte in another state

_Text = TypeVar("_Text", str, bytes, str | None)


@dataclass(frozen=True, kw_only=True)
class TextEncoding(Options):
    """How the text of files is encoded."""

    encoding: str = option(
        _UTF_8,
        "The encoding of the text that is read, by one of Python's names: utf-8, cp949 (EUC-KR "
        "among it), utf-16 (not by create_pretraining_data), cp932 (Shift-JIS), gb18030, latin-1.",
    )
    unicode_form: str = option(
        AS_IS,
        "nfc composes characters that are in pieces (NFD: Hangul in jamo, accents beside their "
        "letters), which most vocabularies lack; as_is leaves them. A model that is trained on "
        "composed text composes the texts that it is asked.",
        choices=(AS_IS, NFC),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _is_text(self.encoding):
            raise UserError(
                f"`encoding`: {shown(self.encoding)} is unknown; give one of Python's names, such "
                "as cp949."
            )

    @property
    def _codec(self) -> str:
        return codecs.lookup(self.encoding).name

    @property
    def is_utf8(self) -> bool:
        """Whether nothing is to be recoded."""
        return self._codec == _UTF_8

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return "UTF-8" if self.is_utf8 else self.encoding

    @property
    def keeps_lines(self) -> bool:
        """Whether a line end is the byte that it is in ASCII, wherever that byte stands."""
        # Two characters: one alone has a byte-order mark before it, or a byte of its own behind.
        is_ascii = "a\n".encode(self.encoding).endswith(b"a\n")
        return is_ascii and not self._codec.startswith(_STATEFUL)

    @property
    def composes(self) -> bool:
        """Whether characters are composed."""
        return self.unicode_form == NFC

    @property
    def settings(self) -> dict[str, str]:
        """What of it is not as usual: what is kept of usual files is named as it always was."""
        usual = {} if self.is_utf8 else {"encoding": self._codec}
        return usual | ({"unicode_form": self.unicode_form} if self.composes else {})

    def composed(self, text: _Text) -> _Text:
        """Composes text where that is asked for; bytes are whole lines of UTF-8."""
        if not self.composes or not text:
            return text
        if isinstance(text, str):
            return composed(text)
        # Bytes that are not UTF-8 stay what they are, and are reported where they are decoded.
        return composed(text.decode(_UTF_8, "surrogateescape")).encode(_UTF_8, "surrogateescape")

    def composed_value(self, value: Any) -> Any:
        """The texts in a JSON value composed, where that is asked for."""
        if not self.composes:
            return value
        if isinstance(value, dict):
            return {key: self.composed_value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.composed_value(one) for one in value]
        return self.composed(value) if isinstance(value, str) else value

    def recoded_lines(self, name: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of a stream, as UTF-8 and composed."""
        if not self.is_utf8:
            lines = io.BufferedReader(_Parts(_recoded(name, lines, self)))
        yield from map(self.composed, lines)


@functools.cache
def _is_text(encoding: str) -> bool:
    """Whether there is such an encoding and text is kept in it: not so of hex, zip and the like."""
    try:
        return bool("a".encode(encoding))
    except (LookupError, ValueError):
        return False


class _Parts(io.RawIOBase):
    """Parts of bytes as a file."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._ready = parts, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and (part := next(self._parts, None)) is not None:
            self._ready = memoryview(part)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


def _recoded(name: str, parts: Iterable[bytes], encoding: TextEncoding) -> Iterator[bytes]:
    """Parts of a text as UTF-8, decoded one after the other."""
    decoder, line = codecs.getincrementaldecoder(encoding.encoding)(), 1
    is_unicode = codecs.lookup(encoding.encoding).name.startswith("utf")
    for number, data in enumerate(itertools.chain(parts, [b""])):
        if not number and data.startswith(codecs.BOM_UTF8) and not is_unicode:
            raise UserError(f"{name}: is UTF-8 (by its byte-order mark); leave `encoding` out.")
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeError as error:
            good = error.start if isinstance(error, UnicodeDecodeError) else 0
            line += data.count(b"\n", 0, good)
            raise UserError(
                f"{name}: line {line} is not {encoding.encoding} ({error}); "
                f"{remedy_of_encoding(encoding, error)}."
            ) from error
        line += text.count("\n")
        yield text.encode()


UTF_8 = TextEncoding()
"""What nearly all files are."""


MOST_WHOLE_BYTES = 1 << 30
"""The largest file that is read at once, unpacked; TriviaQA's have some hundred megabytes."""

MOST_TIMES, _SMALL_BYTES = 200, 64 << 20
"""How many times its size a packed file may unpack to; text is packed to a tenth or so."""

_LOGGER = logging.getLogger(__name__)
_MOST_ILL_FORMED = 0.01  # a larger share of bytes that are not UTF-8 means another encoding
_FEW_BYTES, _MOST_OF_FEW = 8, 0.25  # in a short text a few bytes prove nothing
# How other kinds of files begin, and what they are.
_OTHERS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PAR1": "Parquet",
}


_warned_of: set[str] = set()  # the files of which bytes were left out


def decode(name: str, first_line: int, data: bytes, encoding: TextEncoding | None = None) -> str:
    """Decodes a part of a file; a few bytes that are not UTF-8 are left out (logged once)."""
    try:
        text, dropped = data.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        first_line += data.count(b"\n", 0, error.start)
        text = data.decode("utf-8", "ignore")
        dropped = len(data) - len(text.encode())
    ill_formed = dropped + data.count(b"\0")
    refuse_ill_formed(name, f"line {first_line}", ill_formed, len(data), encoding)
    if dropped and name not in _warned_of:
        _warned_of.add(name)
        _LOGGER.warning(
            "%s: %d bytes from line %d on are not UTF-8, and such bytes are left out; if they "
            "matter, correct the file.",
            *(name, dropped, first_line),
        )
    return text


def refuse_ill_formed(
    name: str, where: str, ill_formed: int, size: int, encoding: TextEncoding | None
) -> None:
    """Refuses a part of a file with so many bytes that are no text; NUL is one of them."""
    needed = encoding.name if encoding else "UTF-8"
    few = min(_FEW_BYTES, _MOST_OF_FEW * size)
    if ill_formed > max(few, _MOST_ILL_FORMED * size):
        raise UserError(
            f"{name}: is not {needed}, the encoding that is needed (from {where} on, "
            f"{ill_formed / size:.0%} of the bytes are ill-formed); "
            f"{remedy_of_encoding(encoding)} or, if it is no text, unpack it or leave it out."
        )


def remedy_of_encoding(encoding: TextEncoding | None, error: UnicodeError | None = None) -> str:
    """What to do about bytes that are not of an encoding, after a semicolon."""
    if encoding is None:
        return "convert the file (iconv -f ITS_ENCODING -t UTF-8)"
    if encoding.is_utf8:
        return "give its `encoding` (cp949, utf-16, latin-1, ...)"
    if (wider := _wider_encoding(encoding, error)) is not None:
        return f"try `encoding={wider}`, which has more characters"
    marks = " (utf-16 needs a byte-order mark, utf-16-le and utf-16-be do not)"
    needs_mark = codecs.lookup(encoding.encoding).name in ("utf-16", "utf-32")
    return f"correct it, or give another `encoding`{marks * needs_mark}"


def _wider_encoding(encoding: TextEncoding, error: UnicodeError | None) -> str | None:
    """The encoding that has all of this one's characters and more, if it reads what this cannot."""
    wider = _WIDER.get(codecs.lookup(encoding.encoding).name)
    if wider and isinstance(error, UnicodeDecodeError):
        with contextlib.suppress(UnicodeError):
            codecs.getincrementaldecoder(wider)().decode(error.object[error.start :][:2])
            return wider
    return None


# How a packed file begins, longer than any text would begin by chance.
_UNPACKERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"\xfd7zXZ\0": lzma.open,
    **{b"BZh%d1AY&SY" % level: bz2.open for level in range(1, 10)},
}
_TAR_AT, _TAR = 257, b"ustar"
_LONGEST_MAGIC = 16
SAMPLE_BYTES = 1 << 16  # that say what form a text has
BLOCK_BYTES = 1 << 20


def _bounded(path: str, packed: IO[bytes], unpacked: Any) -> Iterator[bytes]:
    """What an unpacker gives, unless it is far more than the packed file can have meant."""
    count = 0
    while part := unpacked.read(_AT_ONCE):
        count += len(part)
        if count > max(_SMALL_BYTES, MOST_TIMES * packed.tell()):
            raise UserError(
                f"{path}: unpacks to more than {MOST_TIMES} times its size, which no text does; "
                "if it is meant, unpack it first, and name what comes out."
            )
        yield part


class Unpacked(io.BufferedReader):
    """A file read through its unpacker; `packed` is the file itself."""

    def __init__(self, packed: IO[bytes], unpacked: Any) -> None:
        super().__init__(unpacked, buffer_size=BLOCK_BYTES)
        self.packed = packed

    def close(self) -> None:
        """Closes the file and its unpacker."""
        super().close()
        self.packed.close()


@contextlib.contextmanager
def _unpacking(path: str) -> Iterator[None]:
    """Inside the block what a damaged file raises becomes one sentence."""
    try:
        yield
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be unpacked ({error}); get the file again.") from error


class LineBlock(NamedTuple):
    """Some whole lines of a file, and how much of the file on disk was read for them."""

    first_line: int
    text: bytes
    packed_bytes: int


_begun: dict[str, Unpacked] = {}  # streams whose beginning was looked at


def open_unpacked(
    path: str, *, stream: bool = False, encoding: TextEncoding | None = None
) -> Unpacked:
    """Opens a file for reading bytes, unpacking it by its first bytes."""
    if stream and path in _begun:
        return _begun.pop(path)
    # A pipe may have nothing to say.
    may_be_empty = stream and own_descriptor(Path(path)) is not None
    packed = open_input(path, stream=stream, may_be_empty=may_be_empty)
    try:
        start = packed.peek(_LONGEST_MAGIC)  # type: ignore[attr-defined]
        unpack = next((one for magic, one in _UNPACKERS.items() if start.startswith(magic)), None)
        plain: Any = _Parts(_bounded(path, packed, unpack(packed))) if unpack else packed
        if encoding and not encoding.is_utf8:
            parts = iter(functools.partial(plain.read, _AT_ONCE), b"")
            plain = _Parts(_recoded(path, parts, encoding))
        return Unpacked(packed, plain)
    except BaseException:
        packed.close()
        raise


def read_line_blocks(
    path: str,
    block_bytes: int = BLOCK_BYTES,
    *,
    stream: bool = False,
    longest: int | None = None,
    encoding: TextEncoding | None = None,
) -> Iterator[LineBlock]:
    """Reads a file in blocks of about `block_bytes` that end where a line ends.

    A byte-order mark at the file's beginning is no text: it is left out here, for all readers.
    """
    most = MOST_LINE_BYTES if longest is None else longest
    line, position = 1, 0
    compose = encoding.composed if encoding else bytes
    with _unpacking(path), open_unpacked(path, stream=stream, encoding=encoding) as file:
        refuse_no_text(path, file.peek(_TAR_AT + len(_TAR)), encoding)
        while text := file.read(block_bytes):
            text += b"" if text.endswith(b"\n") else file.readline(most + 1)
            if len(text) - 1 - text.rfind(b"\n", 0, -1) > most:
                raise line_too_long(path, line + text.count(b"\n", 0, -1))
            if not position:
                text = text.removeprefix(codecs.BOM_UTF8)
            now = file.packed.tell()
            if text:
                yield LineBlock(line, compose(text), now - position)
            line, position = line + text.count(b"\n"), now


def read_whole(
    path: str, most_bytes: int = MOST_WHOLE_BYTES, encoding: TextEncoding | None = None
) -> bytes:
    """All bytes of a file, unpacked, without a byte-order mark at their beginning."""
    content = io.BytesIO()
    with _unpacking(path), open_unpacked(path, encoding=encoding) as file:
        while part := file.read(BLOCK_BYTES):
            content.write(part)
            if content.tell() > most_bytes:
                raise UserError(
                    f"{path}: has more than {most_bytes >> 20:,} MiB, the most that is read at "
                    "once; cut it into several files."
                )
    return content.getvalue().removeprefix(codecs.BOM_UTF8)


def beginning_of_text(path: str, encoding: TextEncoding | None = None) -> bytes:
    """The first bytes of a file, unpacked, without a byte-order mark and blanks in front.

    Of a stream they are kept for its next reader.
    """
    with _unpacking(path), contextlib.ExitStack() as stack:
        file = stack.enter_context(open_unpacked(path, stream=True, encoding=encoding))
        start = file.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
        if not file.packed.seekable():  # it can be read once only
            stack.pop_all()
            _begun[path] = file
    refuse_no_text(path, start, encoding)
    return start.removeprefix(codecs.BOM_UTF8).lstrip()


def lines_of(block: LineBlock) -> Iterator[bytes]:
    """The lines of a block without their ends."""
    lines = block.text.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        yield line.removesuffix(b"\r")


def refuse_no_text(path: str, start: bytes, encoding: TextEncoding | None = None) -> None:
    """Refuses a file whose (unpacked) beginning is not that of a UTF-8 text."""
    found = next((kind for mark, kind in _OTHERS.items() if start.startswith(mark)), None)
    found = "tar" if start[_TAR_AT:].startswith(_TAR) else found
    if found and found.startswith("UTF"):
        give = f"give `encoding={found.lower()}`"
        convert = f"convert it to UTF-8 (iconv -f {found} -t UTF-8)"
        raise UserError(f"{path}: is {found}; {give if encoding else convert}.")
    if found == "Parquet":
        raise UserError(f"{path}: is {found}; write its texts as JSON lines.")
    if found == "zip" and path.lower().endswith((".xlsx", ".xlsm")):
        raise UserError(f"{path}: is an Excel workbook; save it as CSV UTF-8, and name that.")
    if found:
        raise UserError(f"{path}: is a {found} archive; unpack it first.")
