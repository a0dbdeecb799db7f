"""The files of an index: rows that grow block by block, and survive a kill.

| file | what it holds |
|---|---|
| `vectors`, `rows`, `ends` | float32; a line of JSON a row, id and text; where each line ends |
| `blocks` | a line a block: rows and bytes of text so far, and the digests of what it added |

The line of a block is written first, and its end after all the rest: with it the block is there. So
it is known how much of the other files a killed process may have left unfinished. The next one that
adds cuts that off, and never more.
"""

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import open_input, without_links, write_all, writing
from keras_bert_impl.json_files import bounded_loads, json_text, parse_json, typed
from keras_bert_impl.options import Rules
from keras_bert_impl.serving.smaller_vectors import Vectors

AGAIN = "remove the folder, and make the index again"

_NUMBERED = _VECTORS, _ROWS, _ENDS = "vectors", "rows", "ends"
_BLOCKS = "blocks"
_NUMBER, _END = np.dtype("<f4"), np.dtype("<i8")
_LONGEST_LINE = 4096  # of `blocks`


_Large = Annotated[int, Rules(sentence="", at_least=0, at_most=1 << 48)]


class _Block(TypedDict):
    rows: _Large
    bytes: _Large
    crc32: tuple[_Large, _Large, _Large]


class _Mapped(NamedTuple):
    vectors: Vectors
    rows: NDArray[np.uint8]
    ends: NDArray[np.int64]


class IndexFiles:
    """The rows in a folder, mapped; `vectors` is float32 [rows, size]."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self.see()

    @staticmethod
    def make(folder: Path) -> None:
        """Makes the files of no rows in an empty folder."""
        for name in (*_NUMBERED, _BLOCKS):
            (folder / name).touch()

    def see(self) -> None:
        """Maps the blocks that are there now."""
        sizes = self._committed()
        vectors, rows, ends = (self._mapped(name, sizes) for name in _NUMBERED)
        # All at once: other threads may be reading.
        self._seen = _Mapped(vectors.view(_NUMBER).reshape(-1, self._size), rows, ends.view(_END))

    @property
    def vectors(self) -> Vectors:
        return self._seen.vectors

    def row(self, number: int) -> tuple[int | str, str | None]:
        """The id and the text of a row."""
        _, rows, ends = self._seen
        begin, end = int(ends[number - 1]) if number else 0, int(ends[number])
        with reading(self._folder / _ROWS, "the texts of an index", AGAIN):
            row, text = bounded_loads(rows[begin:end].tobytes())
        return row, text

    def append(
        self, vectors: Vectors, ids: Sequence[int | str] | None, texts: Sequence[str | None]
    ) -> None:
        """Adds a block; when this returns it is on the disk. One process at a time."""
        with writing(self._folder):
            sizes = self._committed()
            rows = sizes[_ENDS] // _END.itemsize
            ids = ids or range(rows + 1, rows + len(vectors) + 1)
            lines = list(map(_line, zip(ids, texts, strict=False)))
            ends = sizes[_ROWS] + np.cumsum([len(line) for line in lines], dtype=_END)
            parts = [vectors.astype(_NUMBER).tobytes(), b"".join(lines), ends.tobytes()]
            block = {
                "rows": rows + len(vectors),
                "bytes": sizes[_ROWS] + len(parts[1]),
                "crc32": [*map(zlib.crc32, parts)],
            }
            for name in _NUMBERED:  # before what says that they may be longer is gone
                if self._length(name) > sizes[name]:
                    self._write(name, sizes[name], b"")
            line, end = _line(block).rstrip(b"\n"), sizes[_BLOCKS]
            before = b"\n" if end else b""  # of the line before, which may lack it
            self._write(_BLOCKS, end - len(before), before + line)
            for name, content in zip(_NUMBERED, parts, strict=True):
                self._write(name, sizes[name], content)
            self._write(_BLOCKS, end + len(line), b"\n")
        self.see()

    def _write(self, name: str, start: int, content: bytes) -> None:
        with without_links(self._folder / name).open("r+b", 0) as file:
            file.truncate(start)
            file.seek(start)
            write_all(file, content)

    def check(self) -> None:
        """Sees that every block is what was written; reads all of them."""
        sizes, before = self._committed(), dict.fromkeys(_NUMBERED, 0)
        with open_input(self._folder / _BLOCKS, may_be_empty=True) as file:
            lines = file.read(sizes[_BLOCKS]).splitlines()
        for line in lines:
            block = self._block(line)
            if damaged := self._damaged(block, before):
                raise UserError(f"{self._folder / damaged}: is damaged; {AGAIN}.")
            before = self._sizes_of(block)

    def _damaged(self, block: _Block, before: dict[str, int]) -> str | None:
        """The first file that does not hold what it should of a block; None where all do."""
        after = self._sizes_of(block)
        for name, digest in zip(_NUMBERED, block["crc32"], strict=True):
            if zlib.crc32(self._mapped(name, after)[before[name] :].data) != digest:
                return name
        return None

    def _committed(self) -> dict[str, int]:
        """How many bytes of each file are of whole blocks."""
        # Before `blocks` is read: another process may be adding.
        there, blocks = {name: self._length(name) for name in _NUMBERED}, self._folder / _BLOCKS
        with open_input(blocks, may_be_empty=True) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LONGEST_LINE))
            *lines, begun = file.read().split(b"\n")
        if len(begun) == _LONGEST_LINE:
            raise UserError(f"{blocks}: has no end of a line; {AGAIN}.")
        known = self._sizes_of(self._block(lines[-1])) if lines else dict.fromkeys(_NUMBERED, 0)
        most, committed = known, {**known, _BLOCKS: size - len(begun)}
        with contextlib.suppress(UserError):  # of a line that is not whole, before all the rest
            block = self._block(begun)
            most = self._sizes_of(block)
            if self._damaged(block, known) is None:  # only the end of its line is missing
                committed = {**most, _BLOCKS: size + 1}
        for name in _NUMBERED:
            if there[name] > most[name]:
                raise UserError(f"{blocks}: is cut off, as {name} has more rows; {AGAIN}.")
        return committed

    def _block(self, line: bytes) -> _Block:
        path = str(self._folder / _BLOCKS)
        return typed(parse_json(line, path, AGAIN), _Block, path, AGAIN)

    def _sizes_of(self, block: _Block) -> dict[str, int]:
        rows = block["rows"]
        numbers = rows * self._size * _NUMBER.itemsize
        return {_VECTORS: numbers, _ROWS: block["bytes"], _ENDS: rows * _END.itemsize}

    def _mapped(self, name: str, sizes: dict[str, int]) -> NDArray[np.uint8]:
        path, size = self._folder / name, sizes[name]
        if self._length(name) < size:
            raise UserError(f"{path}: is cut off; {AGAIN}.")
        return np.memmap(path, np.uint8, "r", shape=size) if size else np.empty(0, np.uint8)

    def _length(self, name: str) -> int:
        with open_input(self._folder / name, may_be_empty=True) as file:
            return file.seek(0, os.SEEK_END)


def _line(value: Any) -> bytes:
    return f"{json_text(value, ensure_ascii=False)}\n".encode("utf-8", "replace")
