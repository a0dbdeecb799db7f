"""Writes blocks of fixed-shape `tf.train.Example`s with NumPy alone, as TFRecord frames.

All records of a block are laid out in one byte matrix: a template row holds what never changes (tags,
feature names, framing), every number gets a cell as wide as its longest form, and a table says which
bytes of a cell count. One boolean selection then closes the gaps. Lengths are ordinary varints, so
the bytes are what a protocol-buffer library would write for this order of features.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from pipelines.records.features import Feature

Bytes = NDArray[np.uint8]
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


def masked_crcs(crcs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The checksums of TFRecord: CRC-32C, rotated and shifted so that a CRC of CRCs is harmless.

    Args:
        crcs: uint32 [n], plain CRC-32C.

    Example:
        >>> masked_crcs(np.array([google_crc32c.value(b"abc")], np.uint32)).tolist()
        [0]
    """
    rotated = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    return rotated + np.uint32(_CRC_DELTA)


def _varint_tables(limit: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]:
    """For 0 .. limit - 1: the bytes in a 4-byte cell, which of them count, and how many."""
    value = np.arange(limit, dtype=np.uint32)
    width = 1 + (value >= 1 << 7) + (value >= 1 << 14) + (value >= 1 << 21)
    code = np.zeros(limit, np.uint32)
    keep = np.zeros(limit, np.uint32)
    for place in range(4):
        part = (value >> np.uint32(7 * place)) & np.uint32(0x7F)
        part |= np.where(place < width - 1, 0x80, 0).astype(np.uint32)
        used = (place < width).astype(np.uint32)
        code |= part * used << np.uint32(8 * place)
        keep |= used << np.uint32(8 * place)
    return code.astype("<u4"), keep.astype("<u4"), width.astype(np.uint8)


@dataclasses.dataclass
class _Field:
    """Where a feature's bytes stand in the matrix.

    Attributes:
        feature: which one.
        start: first byte of its numbers.
        wide: its numbers take 1 to 4 bytes, in cells of 4; otherwise always the same bytes.
        lengths: places of its four length cells, outermost first (entry, feature, list, numbers).
    """

    feature: Feature
    start: int
    wide: bool
    lengths: list[int]


class _Layout:
    """Builds the template row: its bytes and which of them are written."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.keep = bytearray()

    def literal(self, data: bytes) -> int:
        """Adds bytes that are always written; returns their place."""
        place = len(self.content)
        self.content += data
        self.keep += b"\x01" * len(data)
        return place

    def cell(self, size: int) -> int:
        """Adds an aligned place for numbers that are filled in later; returns it."""
        gap = -len(self.content) % _CELL
        place = len(self.content) + gap
        self.content += bytes(gap + size)
        self.keep += bytes(gap + size)
        return place


class BlockSerialiser:
    """Turns blocks of feature arrays into framed records.

    Args:
        features: names, sizes and types, in the order in which they are written.
        limits: for integer features, one more than the largest number that can occur.

    Example:
        >>> serialiser = BlockSerialiser([Feature("x", 2)], {"x": 300})
        >>> data, sizes = serialiser.frames({"x": np.array([[1, 299]])})
        >>> sizes.tolist(), data[12:-4].hex()
        ([34], '0a100a0e0a01781209' '1a070a0301ab02')
    """

    def __init__(self, features: Sequence[Feature], limits: Mapping[str, int]) -> None:
        longest = 64 + sum(64 + _CELL * feature.size for feature in features)
        self._codes, self._keeps, self._widths = _varint_tables(max(longest, *limits.values(), 2))
        sizes = [google_crc32c.value(size.to_bytes(8, "little")) for size in range(longest)]
        self._length_crcs = masked_crcs(np.array(sizes, np.uint32))
        layout = _Layout()
        self._frame = layout.literal(bytes(12))
        layout.literal(b"\x0a")
        self._total = layout.cell(_CELL)
        self._fields = [self._place(layout, feature, limits) for feature in features]
        self._checksum = layout.literal(bytes(4))
        layout.cell(0)
        self._template = np.frombuffer(bytes(layout.content), np.uint8)
        self._template_keep = np.frombuffer(bytes(layout.keep), np.uint8)
        self._matrix = self._keep = np.zeros((0, len(self._template)), np.uint8)

    def frames(self, block: Mapping[str, NDArray]) -> tuple[bytes, NDArray[np.int64]]:
        """Serialises a block.

        Args:
            block: for each feature an array [examples, size].

        Returns:
            The framed records one after the other, and int64 [examples], the bytes of each.
        """
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
        flat = self._matrix[:examples][self._keep[:examples].view(bool)]
        sizes = record + 16
        _write_checksums(flat, sizes)
        return flat.tobytes(), sizes

    @staticmethod
    def _place(layout: _Layout, feature: Feature, limits: Mapping[str, int]) -> _Field:
        key = feature.name.encode()
        lengths = []
        layout.literal(b"\x0a")
        lengths.append(layout.cell(_CELL))
        layout.literal(b"\x0a" + varint(len(key)) + key + b"\x12")
        lengths.append(layout.cell(_CELL))
        layout.literal(b"\x12" if feature.is_float else b"\x1a")
        lengths.append(layout.cell(_CELL))
        layout.literal(b"\x0a")
        lengths.append(layout.cell(_CELL))
        wide = not feature.is_float and limits[feature.name] > 0x80
        if wide:
            return _Field(feature, layout.cell(_CELL * feature.size), wide, lengths)
        size = feature.size * (4 if feature.is_float else 1)
        return _Field(feature, layout.literal(bytes(size)), wide, lengths)

    def _reserve(self, examples: int) -> None:
        """Makes the matrices large enough; what never changes is written only then."""
        if examples > len(self._matrix):
            self._matrix = np.tile(self._template, (examples, 1))
            self._keep = np.tile(self._template_keep, (examples, 1))

    def _fill(self, field: _Field, numbers: NDArray) -> NDArray[np.int64]:
        """Writes a feature's numbers and lengths; gives the bytes of its map entry with its tag."""
        feature, examples = field.feature, len(numbers)
        if field.wide:
            first, last = field.start // _CELL, field.start // _CELL + feature.size
            self._matrix[:examples].view("<u4")[:, first:last] = self._codes.take(numbers)
            self._keep[:examples].view("<u4")[:, first:last] = self._keeps.take(numbers)
            size = self._widths.take(numbers).sum(axis=1, dtype=np.int64)
        else:
            kind = "<f4" if feature.is_float else np.uint8
            content = np.ascontiguousarray(numbers, kind).view(np.uint8)
            self._matrix[:examples, field.start : field.start + content.shape[1]] = content
            size = np.full(examples, content.shape[1], np.int64)
        # From the numbers outwards; the entry also holds the feature's name with its two bytes.
        for depth, place in enumerate(reversed(field.lengths)):
            size = size + (len(feature.name) + 2 if depth == len(field.lengths) - 1 else 0)
            self._put_length(place, size)
            size = size + self._widths[size] + 1
        return size

    def _put_length(self, place: int, length: NDArray[np.int64]) -> None:
        word = place // _CELL
        self._matrix[: len(length)].view("<u4")[:, word] = self._codes[length]
        self._keep[: len(length)].view("<u4")[:, word] = self._keeps[length]


def _write_checksums(flat: Bytes, sizes: NDArray[np.int64]) -> None:
    """Fills in the last four bytes of each frame."""
    data = flat.tobytes()
    ends = np.cumsum(sizes)
    spans = zip((ends - sizes + 12).tolist(), (ends - 4).tolist(), strict=True)
    crc = np.array([google_crc32c.value(data[start:end]) for start, end in spans], np.uint32)
    checksums = masked_crcs(crc).astype("<u4").view(np.uint8).reshape(-1, 4)
    flat[(ends - 4)[:, None] + np.arange(4)] = checksums
