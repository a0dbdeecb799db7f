"""A model's outputs for the rows of a split, kept in files: read as often as answers are made."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, writing
from pipelines.records.row_set import RowSet
from pipelines.records.rows import Numbers, Rows

_ZEROS = 1 << 20  # bytes that are written at once


class RowOutputs:
    """The outputs of all rows by name, in files that are mapped into memory.

    An output with a number for each token is kept for real tokens only.

    Args:
        folder: where the files are; made where it is missing.
        token_outputs: the outputs that are [batch, length, ...]; all others are [batch, ...].
    """

    def __init__(self, folder: Path, rows: RowSet, token_outputs: Iterable[str] = ()) -> None:
        self._folder, self._token_outputs = make_folder(folder), frozenset(token_outputs)
        self._lengths = rows.lengths.astype(np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        self._files: dict[str, NDArray] = {}

    def add(self, numbers: Numbers, outputs: Mapping[str, NDArray]) -> None:
        """Keeps the outputs of some rows.

        Args:
            numbers: int64 [n], which rows, each once.
            outputs: float32 [n, ...], or [n, length, ...] of token outputs.
        """
        for name, array in outputs.items():
            if name not in self._token_outputs:
                _check_finite(name, array)
                self._file(name, array.shape[1:], array.dtype)[numbers] = array
                continue
            lengths = self._lengths[numbers]
            inside = np.arange(array.shape[1]) < lengths[:, None]  # [n, length]
            positions = (self._offsets[numbers][:, None] + np.arange(array.shape[1]))[inside]
            real = array[inside]
            _check_finite(name, real)
            self._file(name, array.shape[2:], array.dtype)[positions] = real

    def read(self, start: int, stop: int) -> dict[str, NDArray]:
        """The outputs of the rows `start` to `stop`.

        Returns:
            Each output [rows, ...]; of token outputs [tokens of these rows, ...], row after row, as
            in the token features of `Rows`.
        """
        first, last = self._offsets[[start, stop]].tolist()
        return {
            name: np.array(file[first:last] if name in self._token_outputs else file[start:stop])
            for name, file in self._files.items()
        }

    def padded(self, start: int, rows: Rows) -> dict[str, NDArray]:
        """The outputs of some rows as a loss takes them: token outputs [rows, length, ...].

        Args:
            rows: the rows; their longest is the length.
        """
        outputs = self.read(start, start + len(rows))
        inside = np.arange(int(rows.lengths.max())) < rows.lengths[:, None]  # [rows, length]
        for name in self._token_outputs & outputs.keys():
            padded = np.zeros([*inside.shape, *outputs[name].shape[1:]], outputs[name].dtype)
            padded[inside] = outputs[name]
            outputs[name] = padded
        return outputs

    def _file(self, name: str, shape: tuple[int, ...], kind: np.dtype) -> NDArray:
        if name not in self._files:
            count = int(self._offsets[-1]) if name in self._token_outputs else len(self._lengths)
            path = self._folder / f"{name}.npy"
            with writing(path):
                file = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(count, *shape))
                _take_room(path, file.offset)
            self._files[name] = file
        return self._files[name]


def _take_room(path: Path, header_bytes: int) -> None:
    """Takes a file's room on the disk: a page of it that has none kills who writes to it."""
    with path.open("r+b") as file:
        file.seek(header_bytes)
        while left := path.stat().st_size - file.tell():
            file.write(bytes(min(left, _ZEROS)))


def _check_finite(name: str, values: NDArray) -> None:
    """Refuses what no answer can be chosen by, and what JSON has no number for."""
    if not np.isfinite(values).all():
        raise UserError(
            f"The model's {name} are NaN or infinite; its weights are damaged or its training "
            "diverged, so take another checkpoint."
        )
