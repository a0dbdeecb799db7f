"""Reading files that may be packed (gzip, xz, bzip2) in blocks of whole lines."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input
from pipelines.corpora.encoding import refuse_other_unicode

_Unpacker = Callable[[IO[bytes]], Any]


def _unpack_gzip(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file)


_UNPACKERS_BY_ENDING: dict[str, _Unpacker] = {
    ".gz": _unpack_gzip,
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}
# How a packed file begins, longer than any text would begin by chance.
_UNPACKERS_BY_MAGIC: dict[bytes, _Unpacker] = {
    b"\x1f\x8b\x08": _unpack_gzip,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    **{b"BZh%d1AY&SY" % level: bz2.BZ2File for level in range(1, 10)},
}
# What has no unpacker here, and what unpacks it.
_OTHER_PACKINGS = {
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"\x04\x22\x4d\x18": ("lz4", "unlz4"),
    b"\x1f\x9d": ("compress", "uncompress"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x"),
    b"Rar!\x1a\x07": ("rar", "unrar x"),
    b"LZIP\x01": ("lzip", "lzip -d"),
}
_TAR_AT, _TAR = 257, b"ustar"
_LONGEST_MAGIC = 16
BLOCK_BYTES = 1 << 20
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)  # what reading a damaged file raises


class Unpacked(io.BufferedReader):
    """A file read through its unpacker; `packed` is the file itself."""

    def __init__(self, packed: IO[bytes], unpacked: Any) -> None:
        super().__init__(unpacked, buffer_size=BLOCK_BYTES)
        self.packed = packed

    def close(self) -> None:
        """Closes the file and its unpacker."""
        super().close()
        self.packed.close()


class LineBlock(NamedTuple):
    """Some whole lines of a file.

    Attributes:
        first_line: the number of the first one, from 1.
        text: the lines with their ends.
        packed_bytes: how much of the file on disk was read for them.
    """

    first_line: int
    text: bytes
    packed_bytes: int


def open_unpacked(path: str) -> Unpacked:
    """Opens a file for reading bytes, unpacking it by its first bytes or its name's ending.

    Raises:
        UserError: it does not exist, is a folder, is empty, cannot be read or is packed in a way
            for which there is no unpacker.
    """
    packed = open_input(path)
    try:
        unpack = _unpacker(path, packed.read(_LONGEST_MAGIC))
        packed.seek(0)
        return Unpacked(packed, unpack(packed) if unpack else packed)
    except OSError as error:
        packed.close()
        raise UserError(f"{path}: cannot be read ({error}); get the file again.") from error
    except UserError:
        packed.close()
        raise


def read_line_blocks(path: str, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Reads a file in blocks of about `block_bytes` that end where a line ends.

    Raises:
        UserError: the file cannot be opened or unpacked to its end, or is no text in UTF-8 by its
            beginning.
    """
    line, position = 1, 0
    with open_unpacked(path) as file:
        try:
            refuse_no_text(path, file.peek(_TAR_AT + len(_TAR)))
            while text := file.read(block_bytes):
                text += b"" if text.endswith(b"\n") else file.readline()
                now = file.packed.tell()
                yield LineBlock(line, text, now - position)
                line, position = line + text.count(b"\n"), now
        except DAMAGED as error:
            raise UserError(
                f"{path}: cannot be unpacked behind line {line} ({error}); get the file again."
            ) from error


def lines_of(block: LineBlock) -> Iterator[bytes]:
    r"""The lines of a block without their ends.

    Example:
        >>> list(lines_of(LineBlock(1, b"One.\r\n\nTwo.\n", 12)))
        [b'One.', b'', b'Two.']
    """
    lines = block.text.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        yield line.removesuffix(b"\r")


def refuse_no_text(path: str, start: bytes) -> None:
    """Refuses what its (unpacked) beginning shows to be no text in UTF-8.

    Raises:
        UserError: it is a tar archive, or another form of Unicode.
    """
    refuse_other_unicode(path, start)
    if start[_TAR_AT:].startswith(_TAR):
        raise UserError(f"{path}: is a tar archive; unpack it (tar -xf), or leave it out.")


def _unpacker(path: str, start: bytes) -> _Unpacker | None:
    """What unpacks a file: its first bytes say it, whatever its name; then its name's ending."""
    for magic, unpack in _UNPACKERS_BY_MAGIC.items():
        if start.startswith(magic):
            return unpack
    for magic, (packing, tool) in _OTHER_PACKINGS.items():
        if start.startswith(magic):
            raise UserError(
                f"{path}: is packed with {packing}, which cannot be read here; unpack it ({tool}), "
                "or pack it with gzip, xz or bzip2 instead."
            )
    name = path.lower()
    endings = _UNPACKERS_BY_ENDING.items()
    return next((unpack for ending, unpack in endings if name.endswith(ending)), None)
