"""Rows: what a model reads for a block of examples, unpadded.

One example may become many rows (windows of a long text), and one row may hold several choices.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of some examples."""

    examples: Numbers  # int64 [rows], which example (counted from 0) each row is of; never falling
    # int64 [rows], the tokens of each row; of several choices, those of the longest.
    lengths: Numbers
    # Features with a number for each token, flat, row after row: int32 [sum of lengths, ...]; with
    # choices [sum of lengths * choices], where all choices of a row are padded with 0 to its
    # length.
    tokens: Mapping[str, NDArray]
    # Features of a fixed shape: int32 or float32 [rows, ...].
    values: Mapping[str, NDArray] = dataclasses.field(default_factory=dict)
    choices: int | None = None  # how many choices each row holds; None where rows are single texts
    # int64 [examples], the tokens of each example that are in no row.
    num_truncated: Numbers | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """How many numbers a token feature has for each token of a row's length."""
        return self.choices or 1

    def offsets(self) -> Numbers:
        """Where each row starts in the flat token features, and their end: int64 [rows + 1]."""
        return np.concatenate([[0], np.cumsum(self.lengths * self.width)])

    def padded(self, length: int) -> dict[str, NDArray]:
        """The arrays that a model reads: token features padded with 0, and the values.

        The former are [rows, length, ...], with choices [rows, choices, length, ...].
        """
        shape = (len(self), length) if self.choices is None else (len(self), self.choices, length)
        tokens = {name: self._padded(flat, shape) for name, flat in self.tokens.items()}
        return tokens | dict(self.values)

    def _padded(self, flat: NDArray, shape: tuple[int, ...]) -> NDArray:
        array = np.zeros([*shape, *flat.shape[1:]], flat.dtype)
        lengths = np.repeat(self.lengths, self.width)[:, None]  # of each line of the array
        lines = array.reshape(-1, shape[-1], *flat.shape[1:])
        lines[np.arange(shape[-1]) < lengths] = flat
        return array
