"""The files of an index: rows that grow block by block, and survive a kill.

| file | what it holds |
|---|---|
| `vectors`, `rows`, `ends` | float32; a line of JSON a row, id and text; where each line ends |
| `blocks` | a line a block: rows and bytes of text so far, and the digests of what it added |

A block is there when its line in `blocks` is, which is written last. What a killed process left
behind that is cut off by the next one that adds.
"""

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import flush, open_input, without_links, writing
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


class IndexFiles:
    """The rows in a folder, mapped.

    Args:
        size: how many numbers a vector has.

    Attributes:
        vectors: float32 [rows, size].
    """

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
        self.vectors: Vectors = self._mapped(_VECTORS, sizes).view(_NUMBER).reshape(-1, self._size)
        self._rows = self._mapped(_ROWS, sizes)
        self._ends = self._mapped(_ENDS, sizes).view(_END)

    def row(self, number: int) -> tuple[int | str, str | None]:
        """The id and the text of a row."""
        begin, end = int(self._ends[number - 1]) if number else 0, int(self._ends[number])
        with reading(self._folder / _ROWS, "the texts of an index", AGAIN):
            row, text = bounded_loads(self._rows[begin:end].tobytes())
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
            # In this order: the line of a block says that the others are there.
            for name, content in zip([*_NUMBERED, _BLOCKS], [*parts, _line(block)], strict=True):
                with without_links(self._folder / name).open("r+b", 0) as file:
                    file.truncate(sizes[name])
                    file.seek(sizes[name])
                    left = memoryview(content)
                    while left:
                        left = left[file.write(left) :]
                    flush(file)
        self.see()

    def check(self) -> None:
        """Sees that every block is what was written; reads all of them."""
        sizes, before = self._committed(), dict.fromkeys(_NUMBERED, 0)
        for line in self._mapped(_BLOCKS, sizes).tobytes().splitlines():
            block = self._block(line)
            after = self._sizes_of(block)
            for name, digest in zip(_NUMBERED, block["crc32"], strict=True):
                if zlib.crc32(self._mapped(name, sizes)[before[name] : after[name]].data) != digest:
                    raise UserError(f"{self._folder / name}: is damaged; {AGAIN}.")
            before = after

    def _committed(self) -> dict[str, int]:
        """How many bytes of each file are of whole blocks."""
        with open_input(self._folder / _BLOCKS, may_be_empty=True) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LONGEST_LINE))
            tail = file.read()
        whole = tail[: tail.rfind(b"\n") + 1]
        lines = whole.splitlines()
        known = self._sizes_of(self._block(lines[-1])) if lines else dict.fromkeys(_NUMBERED, 0)
        return {**known, _BLOCKS: size - len(tail) + len(whole)}

    def _block(self, line: bytes) -> _Block:
        path = str(self._folder / _BLOCKS)
        return typed(parse_json(line, path, AGAIN), _Block, path, AGAIN)

    def _sizes_of(self, block: _Block) -> dict[str, int]:
        rows = block["rows"]
        numbers = rows * self._size * _NUMBER.itemsize
        return {_VECTORS: numbers, _ROWS: block["bytes"], _ENDS: rows * _END.itemsize}

    def _mapped(self, name: str, sizes: dict[str, int]) -> NDArray[np.uint8]:
        path, size = self._folder / name, sizes[name]
        with open_input(path, may_be_empty=True) as file:
            if file.seek(0, os.SEEK_END) < size:
                raise UserError(f"{path}: is cut off; {AGAIN}.")
        return np.memmap(path, np.uint8, "r", shape=size) if size else np.empty(0, np.uint8)


def _line(value: Any) -> bytes:
    return f"{json_text(value, ensure_ascii=False)}\n".encode("utf-8", "replace")
