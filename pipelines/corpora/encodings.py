"""How somebody's text stands in bytes: its encoding, and whether its characters are composed.

What is read is UTF-8 from here on: a file in another encoding is recoded while it is read, a block
after the other, so that lines, positions and everything behind them know of one encoding only.
"""

import codecs
import functools
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.options import check_options, option
from keras_bert_impl.tokenization.reference import composed
from keras_bert_impl.tokenization.text_settings import AS_IS, NFC

_AT_ONCE = 1 << 16
_UTF_8 = "utf-8"
_STATEFUL = ("utf-7", "iso2022", "hz")  # a line end may be the same byte in another state

_Text = TypeVar("_Text", str, bytes, str | None)


@dataclass(frozen=True, kw_only=True)
class TextEncoding:
    """How the text of files stands in bytes."""

    encoding: str = option(
        _UTF_8,
        "The encoding of the text that is read, by one of Python's names: utf-8, cp949 (EUC-KR "
        "among it), utf-16, cp932 (Shift-JIS), gb18030, latin-1, ...",
    )
    unicode_form: str = option(
        AS_IS,
        "nfc composes characters that stand in pieces (NFD: Hangul in jamo, accents beside their "
        "letters), which most vocabularies do not have; as_is leaves them. A model that is trained "
        "so keeps it, and is served so.",
        choices=(AS_IS, NFC),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not _is_text(self.encoding):
            raise UserError(
                f"`encoding`: {shown(self.encoding)} is unknown; give one of Python's names, such "
                "as cp949."
            )

    @property
    def is_utf8(self) -> bool:
        """Whether nothing is to be recoded."""
        return codecs.lookup(self.encoding).name == _UTF_8

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return "UTF-8" if self.is_utf8 else self.encoding

    @property
    def keeps_lines(self) -> bool:
        """Whether a line end is the byte that it is in ASCII, wherever that byte stands."""
        # Two characters: one alone has a byte-order mark before it, or a byte of its own behind.
        is_ascii = "a\n".encode(self.encoding).endswith(b"a\n")
        return is_ascii and not codecs.lookup(self.encoding).name.startswith(_STATEFUL)

    @property
    def composes(self) -> bool:
        """Whether characters are composed."""
        return self.unicode_form == NFC

    @property
    def settings(self) -> dict[str, str]:
        """What of it is not as usual: what is kept of usual files is named as it always was."""
        usual = {} if self.is_utf8 else {"encoding": codecs.lookup(self.encoding).name}
        return usual | ({"unicode_form": self.unicode_form} if self.composes else {})

    def composed(self, text: _Text) -> _Text:
        """Composes text where that is asked for; bytes are whole lines of UTF-8."""
        if not self.composes or not text:
            return text
        if isinstance(text, str):
            return composed(text)
        # Bytes that are no UTF-8 stay what they are: whoever decodes them says where they stand.
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

    def recoded(self, name: str, file: Any) -> Any:
        """A file of bytes in UTF-8, with a method `readinto` as it has; itself if it is UTF-8."""
        return file if self.is_utf8 else _Recoded(name, file.read, self.encoding)

    def recoded_lines(self, name: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of a stream, as UTF-8 and composed."""
        if not self.is_utf8:
            parts = iter(lines)
            raw: Any = _Recoded(name, lambda _: next(parts, b""), self.encoding)
            lines = io.BufferedReader(raw)
        yield from map(self.composed, lines)


@functools.cache
def _is_text(encoding: str) -> bool:
    """Whether there is such an encoding and text is kept in it: not so of hex, zip and the like."""
    try:
        return bool("a".encode(encoding))
    except (LookupError, ValueError):
        return False


class _Recoded(io.RawIOBase):
    """A file's text as UTF-8, decoded a block after the other; it knows the line it is on."""

    def __init__(self, name: str, read: Callable[[int], bytes], encoding: str) -> None:
        self._name, self._read, self._encoding = name, read, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready, self._line, self._ended = memoryview(b""), 1, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data = self._read(_AT_ONCE)
            self._ended = not data
            text = self._decoded(data)
            self._line += text.count("\n")
            self._ready = memoryview(text.encode())
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, final=self._ended)
        except UnicodeError as error:
            good = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = self._line + data.count(b"\n", 0, good)
            raise UserError(
                f"{self._name}: line {line} is not {self._encoding} "
                f"({error}); correct it, or give another `encoding` (utf-16 needs a byte-order "
                "mark, utf-16-le and utf-16-be do not)."
            ) from error


UTF_8 = TextEncoding()
"""What nearly all files are."""
