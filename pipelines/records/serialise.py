"""The features of pre-training examples, serialised as TFRecord frames with NumPy alone.

A protocol-buffer library takes tens of microseconds for an example, which would be most of the time
of making pre-training data; here it is about one. All records of a block are laid out in one byte
matrix: a template row holds what never changes (tags, feature names, framing), every number gets a
cell as wide as its longest form, and a table says which bytes of a cell count. Then the gaps are
closed. Lengths are ordinary varints, so the bytes are what a protocol-buffer library would write
for this order of features.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError


@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of so many numbers; integers are below `limit`, which a reader does not need."""

    name: str
    size: int
    is_float: bool = False
    limit: int = 0


def pair_features(length: int, predictions: int | None, vocab_size: int = 0) -> tuple[Feature, ...]:
    """The features of pre-training examples, by the reference's names and in its order.

    Example:
        >>> [feature.name for feature in pair_features(128, None)]
        ['input_ids', 'input_mask', 'segment_ids', 'next_sentence_labels']
    """
    masked = (
        ()
        if predictions is None
        else (
            Feature("masked_lm_positions", predictions, limit=length),
            Feature("masked_lm_ids", predictions, limit=vocab_size),
            Feature("masked_lm_weights", predictions, is_float=True),
        )
    )
    return (
        Feature("input_ids", length, limit=vocab_size),
        Feature("input_mask", length, limit=2),
        Feature("segment_ids", length, limit=2),
        *masked,
        Feature("next_sentence_labels", 1, limit=2),
    )


def example_parser(features: Sequence[Feature]) -> Callable[[list[bytes]], dict[str, NDArray]]:
    """Makes a function from serialised examples to arrays [examples, size], int32 or float32."""
    import tensorflow as tf

    spec = {
        feature.name: tf.io.FixedLenFeature(
            [feature.size], tf.float32 if feature.is_float else tf.int64
        )
        for feature in features
    }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def parse(contents: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.device("/cpu:0"):
            parsed = tf.io.parse_example(contents, spec)
            return {
                name: tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.int32)
                for name, tensor in parsed.items()
            }

    return lambda contents: {name: each.numpy() for name, each in parse(contents).items()}


def feature_sizes(content: bytes, where: str) -> dict[str, int]:
    """How many numbers each feature of one serialised example holds."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        example = tf.train.Example.FromString(content)
    except DecodeError as error:
        raise UserError(
            f"{where}: is no tf.train.Example; name shards of create_pretraining_data."
        ) from error
    return {
        name: len(feature.float_list.value or feature.int64_list.value)
        for name, feature in example.features.feature.items()
    }


Bytes = NDArray[np.uint8]
# The framed records of a block one after the other, uint8 [bytes], and the bytes of each, int64.
Frames = tuple[Bytes, NDArray[np.int64]]

FRAME_BYTES = 16  # length and its checksum in front of a record, the record's checksum after it
_CRC_DELTA = 0xA282EAD8
_CELL = 4  # bytes for a varint below 2 ** 28


def varint(value: int) -> bytes:
    """The protocol-buffer form of a non-negative number.

    Example:
        >>> varint(1).hex(), varint(300).hex()
        ('01', 'ac02')
    """
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def masked_crcs(contents: Sequence[bytes]) -> NDArray[np.uint32]:
    """The checksums of TFRecord: CRC-32C, rotated and shifted so that a CRC of CRCs is harmless.

    Example:
        >>> masked_crcs([b"abc"]).tolist()
        [569464686]
    """
    crcs = np.array([google_crc32c.value(content) for content in contents], np.uint32)
    rotated = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    return rotated + np.uint32(_CRC_DELTA)


def _varint_tables(limit: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]:
    """For 0 .. limit - 1: the bytes in a 4-byte cell, which of them count, and how many."""
    value = np.arange(limit, dtype=np.uint32)
    width = 1 + (value >= 1 << 7) + (value >= 1 << 14) + (value >= 1 << 21)
    code = np.zeros(limit, np.uint32)
    keep = np.zeros(limit, np.uint32)
    for byte in range(4):
        part = (value >> np.uint32(7 * byte)) & np.uint32(0x7F)
        part |= np.where(byte < width - 1, 0x80, 0).astype(np.uint32)
        used = (byte < width).astype(np.uint32)
        code |= part * used << np.uint32(8 * byte)
        keep |= used << np.uint32(8 * byte)
    return code.astype("<u4"), keep.astype("<u4"), width.astype(np.uint8)


@dataclasses.dataclass
class _Field:
    """Where a feature's bytes are in the matrix."""

    feature: Feature
    start: int  # first byte of its numbers
    # Bytes of its whole map entry; None where its numbers take 1 to 4 bytes each, in cells of 4.
    entry_bytes: int | None
    lengths: list[int]  # positions of its four length cells, from the numbers outwards


class _Layout:
    """Builds the template row: its bytes, which of them are written, and where gaps may be."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.keep = bytearray()
        self.segments: list[tuple[int, int, bool]] = []  # first byte, end, may have gaps

    def literal(self, data: bytes) -> int:
        """Adds bytes that are always written; returns their position."""
        position = len(self.content)
        self.content += data
        self.keep += b"\x01" * len(data)
        return position

    def cell(self, size: int) -> int:
        """Adds aligned space for numbers that are filled in later; returns its position."""
        gap = -len(self.content) % _CELL
        position = len(self.content) + gap
        self.content += bytes(gap + size)
        self.keep += bytes(gap + size)
        return position

    def end_segment(self, *, gaps: bool) -> None:
        """Closes a segment; neighbours of one kind become one."""
        first = self.segments[-1][1] if self.segments else 0
        if self.segments and self.segments[-1][2] == gaps:
            first = self.segments.pop()[0]
        self.segments.append((first, len(self.content), gaps))


class BlockSerialiser:
    """Turns blocks of feature arrays into framed records.

    Example:
        >>> serialiser = BlockSerialiser([Feature("x", 2, limit=300)])
        >>> data, sizes = serialiser.frames({"x": np.array([[1, 299]])})
        >>> sizes.tolist(), data[12:-4].tobytes().hex()
        ([32], '0a0e0a0c0a017812071a050a0301ab02')
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        longest = 64 + sum(64 + _CELL * feature.size for feature in features)
        limit = max(longest, *(feature.limit for feature in features))
        self._codes, self._keeps, self._widths = _varint_tables(limit)
        self._length_crcs = masked_crcs([size.to_bytes(8, "little") for size in range(longest)])
        layout = _Layout()
        layout.literal(bytes(12) + b"\x0a")  # length, its checksum, tag of the features
        self._total = layout.cell(_CELL)
        layout.end_segment(gaps=True)
        self._fields = [_lay_out(layout, feature) for feature in features]
        layout.literal(bytes(4))  # checksum
        layout.end_segment(gaps=False)
        self._segments = layout.segments
        layout.cell(0)  # rows are whole words
        self._template = np.frombuffer(bytes(layout.content), np.uint8)
        self._template_keep = np.frombuffer(bytes(layout.keep), np.uint8)
        self._matrix = self._keep = np.zeros((0, len(self._template)), np.uint8)

    def frames(self, block: Mapping[str, NDArray]) -> Frames:
        """Serialises a block: arrays [examples, size] by their features' names."""
        examples = len(block[self._fields[0].feature.name])
        self._reserve(examples)
        total = np.zeros(examples, np.int64)
        for field in self._fields:
            total += self._fill(field, np.asarray(block[field.feature.name]))
        self._put_length(self._total, total)
        record = total + 1 + self._widths[total]
        words = self._matrix[:examples].view("<u4")
        words[:, 0] = record
        words[:, 2] = self._length_crcs[record]
        sizes = record + FRAME_BYTES
        flat = self._without_gaps(sizes)
        _write_checksums(flat, sizes)
        return flat, sizes

    def _reserve(self, examples: int) -> None:
        """Makes the matrices large enough; what never changes is written only then."""
        if examples > len(self._matrix):
            self._matrix = np.tile(self._template, (examples, 1))
            self._keep = np.tile(self._template_keep, (examples, 1))

    def _fill(self, field: _Field, numbers: NDArray) -> NDArray[np.int64] | int:
        """Writes a feature's numbers and lengths; gives the bytes of its map entry with its tag."""
        feature, examples = field.feature, len(numbers)
        if field.entry_bytes is not None:
            kind = "<f4" if feature.is_float else np.uint8
            content = np.ascontiguousarray(numbers, kind).view(np.uint8)
            self._matrix[:examples, field.start : field.start + content.shape[1]] = content
            return field.entry_bytes
        first, last = field.start // _CELL, field.start // _CELL + feature.size
        index = numbers.astype(np.intp)
        self._matrix[:examples].view("<u4")[:, first:last] = self._codes.take(index)
        self._keep[:examples].view("<u4")[:, first:last] = self._keeps.take(index)
        size = self._widths.take(index).sum(axis=1, dtype=np.int64)
        for depth, position in enumerate(field.lengths):
            if depth == len(field.lengths) - 1:  # the feature's name in its map entry
                size = size + len(feature.name) + 2
            self._put_length(position, size)
            size = size + self._widths[size] + 1
        return size

    def _put_length(self, position: int, length: NDArray[np.int64]) -> None:
        word = position // _CELL
        self._matrix[: len(length)].view("<u4")[:, word] = self._codes[length]
        self._keep[: len(length)].view("<u4")[:, word] = self._keeps[length]

    def _without_gaps(self, sizes: NDArray[np.int64]) -> Bytes:
        """Copies what counts of every row, segment by segment.

        A segment whose rows have different lengths is first packed, then copied in windows as wide
        as its longest row. What a window writes too much is overwritten: by segments that are
        copied later (those of equal length come last) or, beyond its record, by the next record.
        """
        examples = len(sizes)
        flat = np.empty(int(sizes.sum()) + len(self._template), np.uint8)
        position = np.cumsum(sizes) - sizes  # where each record continues
        fixed = []
        for first, last, gaps in self._segments:
            cells = self._matrix[:examples, first:last]
            if gaps:
                lengths = _copy_packed(cells, self._keep[:examples, first:last], flat, position)
                position = position + lengths
            else:
                fixed.append((position, cells))
                position = position + (last - first)
        for start, cells in fixed:
            _windows(flat, cells.shape[1])[start] = cells
        return flat[: int(sizes.sum())]


def _lay_out(layout: _Layout, feature: Feature) -> _Field:
    """Adds a feature to the template row."""
    name = feature.name.encode()
    kind = b"\x12" if feature.is_float else b"\x1a"
    head = b"\x0a" + varint(len(name)) + name + b"\x12"
    if feature.is_float or feature.limit <= 0x80:  # every number takes the same bytes
        size = feature.size * (4 if feature.is_float else 1)
        tail = b"\x0a" + varint(size)
        tail = kind + varint(len(tail) + size) + tail
        head += varint(len(tail) + size) + tail
        head = b"\x0a" + varint(len(head) + size) + head
        layout.literal(head)
        field = _Field(feature, layout.literal(bytes(size)), len(head) + size, [])
        layout.end_segment(gaps=False)
        return field
    lengths = []
    for tag in (b"\x0a", head, kind, b"\x0a"):
        layout.literal(tag)
        lengths.append(layout.cell(_CELL))
    field = _Field(feature, layout.cell(_CELL * feature.size), None, lengths[::-1])
    layout.end_segment(gaps=True)
    return field


def _windows(flat: Bytes, width: int) -> Bytes:
    """All overlapping windows of a flat array: [len(flat) - width + 1, width], no copy."""
    return np.lib.stride_tricks.sliding_window_view(flat, width, writeable=True)


def _copy_packed(
    cells: Bytes, keep: Bytes, flat: Bytes, position: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Copies the kept bytes of each row of `cells` to its position; gives the bytes of each row."""
    examples, columns = cells.shape
    index = np.flatnonzero(keep.view(bool))
    starts = np.searchsorted(index, np.arange(examples + 1) * columns)
    lengths = np.diff(starts)
    width = int(lengths.max(initial=1))
    packed = np.zeros(len(index) + width, np.uint8)
    np.take(cells.reshape(-1), index, out=packed[: len(index)], mode="clip")
    _windows(flat, width)[position] = _windows(packed, width)[starts[:-1]]
    return lengths


def _write_checksums(flat: Bytes, sizes: NDArray[np.int64]) -> None:
    """Fills in the last four bytes of each frame."""
    data = flat.tobytes()
    ends = np.cumsum(sizes)
    spans = zip((ends - sizes + 12).tolist(), (ends - 4).tolist(), strict=True)
    crcs = masked_crcs([data[start:end] for start, end in spans])
    checksums = crcs.astype("<u4").view(np.uint8).reshape(-1, 4)
    flat[(ends - 4)[:, None] + np.arange(4)] = checksums
