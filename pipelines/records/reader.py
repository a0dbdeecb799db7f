"""Any records of a set of shards, by their numbers."""

import os
import resource
from collections.abc import Sequence
from pathlib import Path

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole
from pipelines.records.serialise import masked_crcs

_FRAME_BYTES = 16  # length and its checksum before the record, the record's checksum after it


def index_path(shard: str | os.PathLike[str]) -> Path:
    """The index file of a shard.

    Example:
        >>> index_path("data/x.tfrecord-00000-of-00002").as_posix()
        'data/x.tfrecord-00000-of-00002.index'
    """
    return Path(f"{os.fspath(shard)}.index")


def write_index(path: Path, sizes: NDArray[np.int64]) -> None:
    """Writes an index.

    Args:
        path: the index file.
        sizes: int64 [records], bytes of each frame.
    """
    with open_whole(path, "wb") as file:
        file.write(np.ascontiguousarray(sizes, "<u4").tobytes())


def load_sizes(shard: str | os.PathLike[str]) -> NDArray[np.uint32]:
    """The sizes of a shard's frames: from its index, or by walking the frames.

    Returns:
        uint32 [records], bytes of each frame.

    Raises:
        UserError: the shard is missing, empty, truncated or no TFRecord file.
    """
    path = Path(shard)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    index = index_path(path)
    if index.exists():
        sizes = np.fromfile(index, "<u4")
        if int(sizes.sum(dtype=np.int64)) == size:
            return sizes
    return walk_frames(path, size)


def walk_frames(path: Path, size: int) -> NDArray[np.uint32]:
    """Finds the frames of a TFRecord file by reading their lengths.

    Args:
        path: the file.
        size: its bytes.

    Raises:
        UserError: the file does not end where a frame ends.
    """
    sizes: list[int] = []
    place = 0
    with path.open("rb", buffering=1 << 20) as file:
        while head := file.read(8):
            frame = int.from_bytes(head, "little") + _FRAME_BYTES
            if place + frame > size or len(head) < 8:
                raise UserError(
                    f"{path}: is truncated or no TFRecord file (record {len(sizes)} reaches beyond "
                    f"its {size} bytes); make this file again."
                )
            sizes.append(frame)
            place += frame
            file.seek(place)
    return np.array(sizes, np.uint32)


_OTHER_FILES = 256  # TensorFlow's threads, events, checkpoints
_HEAD, _TAIL = 12, 4  # bytes of a frame before and after the record


def allow_open_files(count: int) -> None:
    """Lets this process keep so many files open besides what else it needs.

    Systems allow 256 to 1,024 at first, and more to who asks.

    Raises:
        UserError: it may not have so many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise UserError(
            f"The input's {count} shards cannot all be open: this system allows {hard} files; "
            "raise the limit (`ulimit -Hn`), or make the set with a smaller --num_shards."
        )
    # Other sets may be open already: room for as many again.
    more = wanted + soft if hard == resource.RLIM_INFINITY else min(wanted + soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))


class RecordReader:
    """Random access to the records of shards; record 0 is the first of the first shard.

    Memory: 4 bytes a record (8 where a shard is over 4 GiB).

    Args:
        shards: TFRecord files; those without an index are walked once.

    Raises:
        UserError: a shard is missing, truncated or altered, or there is not a single record.
    """

    def __init__(self, shards: Sequence[str | os.PathLike[str]]) -> None:
        self._paths = [Path(shard) for shard in shards]
        sizes = [load_sizes(path) for path in self._paths]
        counts = np.array([len(each) for each in sizes], np.int64)
        self._first = np.concatenate(
            [[0], np.cumsum(counts)]
        )  # number of each shard's first record
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
        for file in getattr(self, "_files", ()):
            os.close(file)

    def first_record(self, shard: int) -> int | None:
        """The number of a shard's first record, or None where the shard is empty."""
        first, end = self._first[shard : shard + 2].tolist()
        return first if first < end else None

    def where(self, records: NDArray[np.int64]) -> list[tuple[Path, int]]:
        """The shard of each record, and the record's number in it, counted from 0."""
        shards = np.searchsorted(self._first, records, side="right") - 1
        inside = (records - self._first[shards]).tolist()
        return [(self._paths[shard], n) for shard, n in zip(shards.tolist(), inside, strict=True)]

    def index_bytes(self) -> int:
        """Memory that the index takes."""
        return self._ends.nbytes

    def read(self, records: NDArray[np.int64]) -> list[bytes]:
        """Reads records, whose checksums are compared.

        Args:
            records: int64 [n], numbers in the set.

        Raises:
            UserError: a record is not what was written.
        """
        shards = np.searchsorted(self._first, records, side="right") - 1
        inside = records - self._first[shards]
        ends = self._ends[records].astype(np.int64)
        starts = np.where(inside == 0, 0, self._ends[records - 1]) + _HEAD
        files = [self._files[shard] for shard in shards.tolist()]
        places = zip(files, (ends - starts).tolist(), starts.tolist(), strict=True)
        frames = [os.pread(file, size, start) for file, size, start in places]
        contents = [frame[:-_TAIL] for frame in frames]
        crcs = np.array([google_crc32c.value(content) for content in contents], np.uint32)
        stored = np.frombuffer(b"".join([frame[-_TAIL:] for frame in frames]), "<u4")
        wrong = np.flatnonzero(masked_crcs(crcs) != stored)
        if len(wrong):
            shard, record = shards[wrong[0]], inside[wrong[0]]
            raise UserError(
                f"{self._paths[shard]}: record {record} was altered since it was written (its "
                "checksum differs); make this shard again."
            )
        return contents
