"""A file of vectors that grows block by block, survives a kill, and appears when it is whole."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import (
    followed,
    is_named,
    make_folder,
    open_whole,
    remove,
    without_links,
    writing,
)
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.locks import owned
from pipelines.vectors.options import PARQUET

_NUMBER = np.dtype("<f4")
_VECTORS, _DESCRIPTION = "vectors", "description.json"

INPUT_SHA256 = "input_sha256"
"""The entry of a description that says of which file the texts are."""


class GrowingVectors:
    """The vectors that are there so far, in a folder next to the output.

    Args:
        block: texts of a block; only whole blocks are kept, so that what follows them is computed
            in the same batches, to the same bytes.

    Attributes:
        rows: how many vectors are there.
    """

    def __init__(self, output: Path, width: int, block: int) -> None:
        self._output, self._width, self._block = output, width, block
        self._folder = _folder_of(output)
        self._file: Any = None
        self._description: Mapping[str, Any] = {}
        self.rows = 0

    def open(self, description: Mapping[str, Any]) -> bool:
        """Continues what was begun with the same description, or begins anew.

        Returns:
            Whether something else had been begun, which is gone now.
        """
        said, vectors = self._folder / _DESCRIPTION, self._folder / _VECTORS
        known = read_json_object(said) if said.is_file() else None
        self._description = description
        if known != description or not vectors.is_file():
            remove(vectors)
            _write(said, description)
        with writing(self._output):
            # Unbuffered: what a full disk did not take is not tried again when it is closed.
            self._file = vectors.open("a+b", 0)
            size = self._block * self._width * _NUMBER.itemsize
            whole = self._file.tell() // size
            self._file.truncate(whole * size)
        self.rows = whole * self._block
        return known not in (None, description)

    @property
    def kept(self) -> int:
        """How many vectors a stopped run leaves to the next one: those of whole blocks."""
        return self.rows // self._block * self._block

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Adds a block, and sees that it is on disk."""
        left = memoryview(np.ascontiguousarray(vectors, _NUMBER).tobytes())
        with writing(self._output):
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        self.rows += len(vectors)

    def finish(self, texts: Iterable[str]) -> None:
        """Writes the output, next to an array what it was made from, and removes the folder."""
        self._file.close()
        if self._output.suffix == PARQUET:
            _write_parquet(self._output, texts, self._blocks(), self._width)
        else:
            # In this order: an array never stands beside what is said of another one.
            remove(origin_of(self._output))
            _write_npy(self._output, self._blocks(), (self.rows, self._width))
            _write(origin_of(self._output), self._description)
        shutil.rmtree(self._folder)

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """The vectors from the beginning, [texts of a block, width].

        They are read, not mapped: a mapped file counts as the process' memory, in the end all of
        it.
        """
        with (self._folder / _VECTORS).open("rb") as file:
            while len(block := np.fromfile(file, _NUMBER, self._block * self._width)):
                yield block.reshape(-1, self._width)


@contextlib.contextmanager
def growing_vectors(output: Path, width: int, block: int) -> Iterator[GrowingVectors]:
    """Gives the vectors that are there so far; no other process can have them meanwhile."""
    folder = without_links(_folder_of(output))
    if not folder.is_dir():
        remove(folder)
    make_folder(folder)
    with owned(
        output.with_name(f".{output.name}.lock"),
        f"{output}: another process is writing it; wait for it or name another file.",
    ):
        yield GrowingVectors(output, width, block)


def origin_of(vectors: Path) -> Path:
    """The file that says what an array of vectors was made from: its text, model and options.

    Example:
        >>> origin_of(Path("lines.npy")).name
        'lines.npy.json'
    """
    return vectors.with_name(f"{vectors.name}.json")


def check_origin(output: Path, input_file: Path) -> None:
    """Sees that what is kept beside an array replaces nothing but an older one of its kind."""
    beside = origin_of(output)
    if output.suffix == PARQUET or not is_named(beside):
        return
    if beside.exists() and beside.samefile(input_file):
        raise UserError(f"{beside}: is the input, which would be replaced; name another output.")
    try:
        ours = INPUT_SHA256 in read_json_object(beside)
    except UserError:
        ours = False
    if not ours:
        raise UserError(
            f"{beside}: would be replaced by what {output} was made from; move it, or name another "
            "output."
        )


def _write(path: Path, description: Mapping[str, Any]) -> None:
    with open_whole(path) as file:
        file.write(json_text(description, indent=2, sort_keys=True))


def _folder_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.incomplete")


def _write_npy(path: Path, blocks: Iterable[NDArray[np.float32]], shape: tuple[int, int]) -> None:
    header = {"descr": _NUMBER.str, "fortran_order": False, "shape": shape}
    with open_whole(followed(path), "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(block.tobytes())


def _write_parquet(
    path: Path, texts: Iterable[str], blocks: Iterable[NDArray[np.float32]], width: int
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), width))])
    source = iter(texts)
    with open_whole(followed(path), "wb") as file, pq.ParquetWriter(file, schema) as writer:
        for block in blocks:
            numbers = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), width)
            words = list(islice(source, len(block)))
            if len(words) < len(block):
                raise UserError(f"{path}: not written, because the text changed; start again.")
            writer.write_table(pa.table([pa.array(words), numbers], schema))
