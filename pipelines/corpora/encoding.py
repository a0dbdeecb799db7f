"""From bytes to text: UTF-8, of which a few ill-formed bytes are left out and counted."""

import logging
from typing import NamedTuple

from keras_bert_impl.errors import UserError

_LOGGER = logging.getLogger(__name__)
_MOST_ILL_FORMED = 0.01  # a larger share of bytes that are no UTF-8 is another encoding
_FEW_BYTES, _MOST_OF_FEW = 8, 0.25  # in a short text so few say nothing, unless it is shorter still
_OTHER_UNICODE = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class Decoded(NamedTuple):
    """Text that was bytes.

    Attributes:
        text: the text.
        dropped_bytes: how many bytes were left out because they are no UTF-8.
    """

    text: str
    dropped_bytes: int


def decode(name: str, first_line: int, data: bytes) -> Decoded:
    r"""Decodes a part of a file.

    Args:
        name: the file, for errors.
        first_line: the number of its line with which `data` begins, for errors.
        data: whole lines.

    Raises:
        UserError: more than a hundredth of the bytes are no UTF-8, or NUL, which no text has.

    Example:
        >>> decode("x.txt", 1, b"caf\xc3\xa9 \xff!")
        Decoded(text='café !', dropped_bytes=1)
    """
    try:
        text, dropped = data.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", "ignore")
        dropped = len(data) - len(text.encode())
    ill_formed = dropped + data.count(b"\0")
    few = min(_FEW_BYTES, _MOST_OF_FEW * len(data))
    if ill_formed > max(few, _MOST_ILL_FORMED * len(data)):
        raise UserError(
            f"{name}: is not UTF-8, the encoding that is needed (from line {first_line} on, "
            f"{ill_formed / len(data):.0%} of the bytes are no such text); convert it "
            "(iconv -f ITS_ENCODING -t UTF-8) or, if it is no text, unpack it or leave it out."
        )
    return Decoded(text, dropped)


def refuse_other_unicode(name: str, start: bytes) -> None:
    """Refuses a file whose byte order mark says that it is no UTF-8.

    Raises:
        UserError: names the file and its encoding.
    """
    for mark, encoding in _OTHER_UNICODE.items():
        if start.startswith(mark):
            raise UserError(
                f"{name}: is {encoding}; convert it to UTF-8 (iconv -f {encoding} -t UTF-8)."
            )


def say_what_was_dropped(dropped_bytes: int) -> None:
    """Says at the end of a job how many bytes were left out, if any."""
    if dropped_bytes:
        _LOGGER.warning(
            "%d bytes of the input are no UTF-8 and were left out; where they matter, mend the "
            "files (iconv -f UTF-8 -t UTF-8 FILE names the first place).",
            dropped_bytes,
        )
