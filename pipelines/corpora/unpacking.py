"""Reading files that may be packed (.gz, .xz, .bz2) in blocks of whole lines."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input

_UNPACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}
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
    """Opens a file for reading bytes, unpacking it by its name's ending.

    Raises:
        UserError: it does not exist, is a folder, is empty or cannot be read.
    """
    packed = open_input(path)
    for ending, unpack in _UNPACKERS.items():
        if path.endswith(ending):
            return Unpacked(packed, unpack(packed))
    return Unpacked(packed, packed)


def read_line_blocks(path: str, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Reads a file in blocks of about `block_bytes` that end where a line ends.

    Raises:
        UserError: the file cannot be opened or unpacked to its end.
    """
    line, position = 1, 0
    with open_unpacked(path) as file:
        while True:
            try:
                text = file.read(block_bytes)
                text += file.readline() if text and not text.endswith(b"\n") else b""
            except DAMAGED as error:
                raise UserError(
                    f"{path}: cannot be unpacked behind line {line} ({error}); get the file again."
                ) from error
            if not text:
                return
            now = file.packed.tell()
            yield LineBlock(line, text, now - position)
            line, position = line + text.count(b"\n"), now


def read_lines(path: str) -> Iterator[bytes]:
    """The lines of a file without their ends.

    Raises:
        UserError: the file cannot be opened or unpacked to its end.
    """
    for block in read_line_blocks(path):
        lines = block.text.split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            yield line.removesuffix(b"\r")
