"""Any records of a set of shards by their numbers, as bytes or as arrays."""

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import allow_open_files, open_input
from pipelines.records.description import index_path
from pipelines.records.serialise import FRAME_BYTES, masked_crcs

_MOST_OF_FRAME = 1 << 30  # a record is read whole; an example has some thousand bytes


def load_sizes(shard: str | os.PathLike[str]) -> NDArray[np.uint32]:
    """The bytes of each frame of a shard: from its index, or by walking the frames."""
    path = Path(shard)
    open_input(path, may_be_empty=True).close()  # an empty shard is passed over
    size = path.stat().st_size
    index = Path(index_path(path))
    if index.is_file():
        sizes = np.fromfile(index, "<u4")
        if int(sizes.sum(dtype=np.int64)) == size and sizes.min(initial=FRAME_BYTES) >= FRAME_BYTES:
            return sizes
    return walk_frames(path, size)


def walk_frames(path: Path, size: int) -> NDArray[np.uint32]:
    """Finds the frames of a TFRecord file by reading their lengths."""
    sizes: list[int] = []
    position = 0
    with path.open("rb", buffering=1 << 20) as file:
        while head := file.read(8):
            frame = int.from_bytes(head, "little") + FRAME_BYTES
            if position + frame > size or len(head) < 8:
                raise UserError(
                    f"{path}: is truncated or no TFRecord file (record {len(sizes)} reaches beyond "
                    f"its {size} bytes); make this file again."
                )
            if frame > _MOST_OF_FRAME:
                raise UserError(
                    f"{path}: is no TFRecord file of examples (record {len(sizes)} would have "
                    f"{frame:,} bytes); make this file again."
                )
            sizes.append(frame)
            position += frame
            file.seek(position)
    return np.array(sizes, np.uint32)


_HEAD, _TAIL = 12, 4  # bytes of a frame before and after the record


class RecordReader:
    """Random access to the records of shards; record 0 is the first of the first shard.

    Memory: 4 bytes a record (8 where a shard is over 4 GiB).
    """

    def __init__(self, shards: Sequence[str | os.PathLike[str]]) -> None:
        self._files: list[int] = []  # nothing to close until they are open
        self._paths = [Path(shard) for shard in shards]
        sizes = [load_sizes(path) for path in self._paths]
        counts = np.array([len(each) for each in sizes], np.int64)
        self._first = np.concatenate([[0], np.cumsum(counts)])  # each shard's first record
        if not len(self):
            raise UserError(f"{self._paths[0] if self._paths else 'The input'}: holds no records.")
        largest = max(int(each.sum(dtype=np.int64)) for each in sizes)
        kind = np.uint32 if largest < 1 << 32 else np.uint64
        # Where each record ends in its shard.
        self._ends = np.concatenate([np.cumsum(each, dtype=kind) for each in sizes])
        allow_open_files(len(self._paths))
        self._files = [os.open(path, os.O_RDONLY) for path in self._paths]

    def __len__(self) -> int:
        return int(self._first[-1])

    def __del__(self) -> None:
        for file in self._files:
            os.close(file)

    def first_record(self, shard: int) -> int | None:
        """The number of a shard's first record, or None where the shard is empty."""
        first, end = self._first[shard : shard + 2].tolist()
        return first if first < end else None

    def _places(self, records: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The shard of each record, and its number in it, counted from 0."""
        shards = np.searchsorted(self._first, records, side="right") - 1
        return shards, records - self._first[shards]

    def read(self, records: NDArray[np.int64]) -> list[bytes]:
        """Reads records, whose checksums are compared."""
        shards, inside = self._places(records)
        ends = self._ends[records].astype(np.int64)
        starts = np.where(inside == 0, 0, self._ends[records - 1]).astype(np.int64) + _HEAD
        files = [self._files[shard] for shard in shards.tolist()]
        spans = zip(files, (ends - starts).tolist(), starts.tolist(), strict=True)
        frames = [os.pread(file, size, start) for file, size, start in spans]
        contents = [frame[:-_TAIL] for frame in frames]
        stored = np.frombuffer(b"".join([frame[-_TAIL:] for frame in frames]), "<u4")
        wrong = np.flatnonzero(masked_crcs(contents) != stored)
        if len(wrong):
            raise UserError(
                f"{self.name(int(records[wrong[0]]))} was altered since it was written (its "
                "checksum differs); make this shard again."
            )
        return contents

    def name(self, record: int) -> str:
        """Names a record by its shard and its number in it: "a.tfrecord: record 3"."""
        shard, number = (int(each[0]) for each in self._places(np.array([record])))
        return f"{self._paths[shard]}: record {number}"

    def namer(self, records: NDArray[np.int64]) -> Callable[[int], str]:
        """A function that names the record in a row of a batch of these records."""
        return lambda row: self.name(int(records[row]))

    def list_by_shard(self, records: NDArray[np.int64]) -> str:
        """Names many records, those of one shard together."""
        shards = defaultdict[Path, list[int]](list)
        for shard, number in np.column_stack(self._places(records)).tolist():
            shards[self._paths[shard]].append(number)
        return " and ".join(
            f"record{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))} of "
            f"{path}"
            for path, numbers in shards.items()
        )
