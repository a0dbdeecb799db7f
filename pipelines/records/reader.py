"""Any records of a set of shards, by their numbers."""

import os
from collections.abc import Sequence
from pathlib import Path

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from pipelines.records.index import load_sizes
from pipelines.records.serialise import masked_crcs


class RecordReader:
    """Random access to the records of shards; record 0 is the first of the first shard.

    Memory: 4 bytes a record (8 in shards over 4 GiB).

    Args:
        shards: TFRecord files; those without an index are walked once.

    Raises:
        UserError: a shard is missing, truncated or altered, or there is not a single record.
    """

    def __init__(self, shards: Sequence[str | os.PathLike[str]]) -> None:
        self._paths = [Path(shard) for shard in shards]
        self._ends: list[NDArray] = []
        for path in self._paths:
            ends = np.cumsum(load_sizes(path), dtype=np.uint64)
            small = not len(ends) or ends[-1] < 1 << 32
            self._ends.append(ends.astype(np.uint32) if small else ends)
        counts = [len(ends) for ends in self._ends]
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if not len(self):
            raise UserError(f"{self._paths[0] if self._paths else 'The input'}: holds no records.")
        self._files = [os.open(path, os.O_RDONLY) for path in self._paths]

    def __len__(self) -> int:
        return int(self._first[-1])

    def __del__(self) -> None:
        for file in getattr(self, "_files", ()):
            os.close(file)

    def first_record(self, shard: int) -> int | None:
        """The number of a shard's first record, or None where the shard is empty."""
        first, end = self._first[shard : shard + 2].tolist()
        return first if first < end else None

    def index_bytes(self) -> int:
        """Memory that the index takes."""
        return sum(ends.nbytes for ends in self._ends)

    def read(self, records: NDArray[np.int64]) -> list[bytes]:
        """Reads records, whose checksums are compared.

        Args:
            records: int64 [n], numbers in the set.

        Raises:
            UserError: a record is not what was written.
        """
        shards = np.searchsorted(self._first, records, side="right") - 1
        inside = records - self._first[shards]
        frames = []
        for shard, record in zip(shards.tolist(), inside.tolist(), strict=True):
            ends = self._ends[shard]
            start = int(ends[record - 1]) if record else 0
            frames.append(os.pread(self._files[shard], int(ends[record]) - start, start))
        contents = [frame[12:-4] for frame in frames]
        crcs = np.array([google_crc32c.value(content) for content in contents], np.uint32)
        stored = np.frombuffer(b"".join(frame[-4:] for frame in frames), "<u4")
        wrong = np.flatnonzero(masked_crcs(crcs) != stored)
        if len(wrong):
            shard, record = shards[wrong[0]], inside[wrong[0]]
            raise UserError(
                f"{self._paths[shard]}: record {record} was altered since it was written (its "
                "checksum differs); make this shard again."
            )
        return contents
