"""Rows: what a model reads for a block of examples, unpadded, and how rows are stored in a record.

One example may become many rows (windows of a long text), and one row may hold several choices.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipelines.records.serialise import Frames, frame_records, varint

Numbers = NDArray[np.int64]
_FEATURES = b"\x0a"  # the tag of an example's features
_LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of some examples.

    Attributes:
        examples: int64 [rows], which example (counted from 0) each row is of; never falling.
        lengths: int64 [rows], the tokens of each row; of several choices, those of the longest.
        tokens: features with a number for each token, flat, row after row: int32
            [sum of lengths]; with choices [sum of lengths * choices], where all choices of a row
            are padded with 0 to its length. In memory there may be more numbers for each token,
            [sum of lengths, ...].
        values: features of a fixed shape: int32 or float32 [rows, ...]. Integers are 0 or more.
        choices: how many choices each row holds; None where rows are single texts.

    Example:
        >>> rows = Rows(np.array([0, 0]), np.array([2, 1]), {"input_ids": np.array([2, 3, 4])},
        ...             {"label_ids": np.array([1, 1])})
        >>> rows.padded(3)["input_ids"].tolist()
        [[2, 3, 0], [4, 0, 0]]
    """

    examples: Numbers
    lengths: Numbers
    tokens: Mapping[str, NDArray]
    values: Mapping[str, NDArray] = dataclasses.field(default_factory=dict)
    choices: int | None = None

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
        """Gives the arrays that a model reads, padded with 0.

        Returns:
            Token features [rows, length, ...], with choices [rows, choices, length, ...]; and the
            values.
        """
        shape = (len(self), length) if self.choices is None else (len(self), self.choices, length)
        return {name: self._padded(flat, shape) for name, flat in self.tokens.items()} | dict(
            self.values
        )

    def _padded(self, flat: NDArray, shape: tuple[int, ...]) -> NDArray:
        array = np.zeros([*shape, *flat.shape[1:]], flat.dtype)
        lengths = np.repeat(self.lengths, self.width)[:, None]  # of each line of the array
        lines = array.reshape(-1, shape[-1], *flat.shape[1:])
        lines[np.arange(shape[-1]) < lengths] = flat
        return array

    def of(self, start: int, stop: int, first_example: int = 0) -> Self:
        """The rows `start` to `stop`, their examples counted from `first_example`."""
        first, last = self.offsets()[[start, stop]]
        return dataclasses.replace(
            self,
            examples=self.examples[start:stop] - first_example,
            lengths=self.lengths[start:stop],
            tokens={name: flat[first:last] for name, flat in self.tokens.items()},
            values={name: array[start:stop] for name, array in self.values.items()},
        )


@dataclasses.dataclass(frozen=True)
class RowFeature:
    """How a feature of rows is stored.

    Attributes:
        name: what the model or the task calls it.
        shape: of one row's value; None where there is a number for each token.
        is_float: a float list; otherwise an int64 list.
    """

    name: str
    shape: tuple[int, ...] | None
    is_float: bool = False


def features_of(rows: Rows) -> tuple[RowFeature, ...]:
    """The features that rows hold, in the order in which they are stored."""
    tokens = [RowFeature(name, None) for name in rows.tokens]
    values = [
        RowFeature(name, array.shape[1:], np.issubdtype(array.dtype, np.floating))
        for name, array in rows.values.items()
    ]
    return (*tokens, *values)


def serialise_rows(rows: Rows) -> Frames:
    """Writes each row as a framed TFRecord that holds a `tf.train.Example`.

    Features may have another length in every row, so no template fits as in `BlockSerialiser`:
    numbers are written for a block at once, and a record is put together from their bytes.
    """
    offsets = rows.offsets()
    columns = [_column(name, flat, offsets) for name, flat in rows.tokens.items()]
    for name, array in rows.values.items():
        flat = array.reshape(len(rows), -1)
        ends = np.arange(len(rows) + 1) * flat.shape[1]
        columns.append(_column(name, flat.reshape(-1), ends))
    records = [b"".join(parts) for parts in zip(*columns, strict=True)]
    return frame_records([_FEATURES + varint(len(record)) + record for record in records])


def _column(name: str, flat: NDArray, offsets: Numbers) -> list[bytes]:
    """The map entry of one feature in each record."""
    key = b"\x0a" + varint(len(name.encode())) + name.encode() + b"\x12"
    if np.issubdtype(flat.dtype, np.floating):
        kind, data, bounds = b"\x12", flat.astype("<f4").tobytes(), offsets * 4
    else:
        kind = b"\x1a"
        try:
            data, ends = varints(flat)
        except ValueError as error:
            raise ValueError(f"the feature {name}: {error}") from error
        bounds = np.concatenate([[0], ends])[offsets]
    sizes = np.diff(bounds)
    heads = {size: _entry_head(key, kind, size) for size in np.unique(sizes).tolist()}
    pairs = itertools.pairwise(bounds.tolist())
    return [heads[end - start] + data[start:end] for start, end in pairs]


def _entry_head(key: bytes, kind: bytes, size: int) -> bytes:
    """Gives the header of so many bytes of numbers."""
    values = b"\x0a" + varint(size)
    feature = kind + varint(len(values) + size) + values
    entry = key + varint(len(feature) + size) + feature
    return b"\x0a" + varint(len(entry) + size) + entry


def varints(numbers: NDArray) -> tuple[bytes, Numbers]:
    """Writes numbers in the form of protocol buffers.

    Args:
        numbers: int32 [n], 0 or more.

    Returns:
        The bytes, and where each number ends in them: int64 [n].

    Example:
        >>> data, ends = varints(np.array([1, 300], np.int32))
        >>> data.hex(), ends.tolist()
        ('01ac02', [1, 3])
    """
    for number in (numbers.min(initial=0), numbers.max(initial=0)):
        if not 0 <= number <= _LARGEST:
            raise ValueError(f"{number} is not a number from 0 to {_LARGEST}")
    values = numbers.astype(np.uint32)
    if not (values > 0x7F).any():
        return values.astype(np.uint8).tobytes(), np.arange(1, len(values) + 1)
    most = -(-int(values.max()).bit_length() // 7)
    data = np.empty([len(values), most], np.uint8)  # seven bits a byte, the lowest first
    used = np.empty([len(values), most], bool)
    widths = np.zeros(len(values), np.int64)
    for place in range(most):
        rest = values >> (7 * place)
        data[:, place] = (rest & 0x7F) | ((rest > 0x7F) << 7)
        used[:, place] = rest > 0 if place else True
        widths += used[:, place]
    return data[used].tobytes(), np.cumsum(widths)


def rows_parser(
    features: Sequence[RowFeature], choices: int | None
) -> Callable[[list[bytes]], tuple[Numbers, dict[str, NDArray], dict[str, NDArray]]]:
    """Makes a function that parses records of rows.

    Args:
        features: what the records hold; at least one has a number for each token.

    Returns:
        A function from `tf.train.Example`s to the lengths, the tokens and the values of `Rows`.
    """
    import tensorflow as tf

    spec = {}
    for feature in features:
        kind = tf.float32 if feature.is_float else tf.int64
        fixed = None if feature.shape is None else tf.io.FixedLenFeature(feature.shape, kind)
        spec[feature.name] = fixed or tf.io.RaggedFeature(kind, row_splits_dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def parse(contents: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.device("/cpu:0"):
            return tf.io.parse_example(contents, spec)

    def parsed(
        contents: list[bytes],
    ) -> tuple[Numbers, dict[str, NDArray], dict[str, NDArray]]:
        arrays = parse(contents)
        tokens, values, lengths = {}, {}, np.zeros(len(contents), np.int64)
        for feature in features:
            array = arrays[feature.name]
            if feature.shape is None:
                tokens[feature.name] = array.flat_values.numpy().astype(np.int32)
                lengths = array.row_lengths().numpy() // (choices or 1)
            else:
                kind = np.float32 if feature.is_float else np.int32
                values[feature.name] = array.numpy().astype(kind)
        return lengths, tokens, values

    return parsed
