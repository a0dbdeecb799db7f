"""Writes a shard: its framed records, its index and what a description says of it.

Every writer of TFRecords goes through here, whatever its records hold and wherever its files are
created, so that each shard has an index and a checksum and is read in the same way.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import IO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.files import open_whole
from pipelines.records.description import ShardEntry
from pipelines.records.names import base_name, index_path
from pipelines.records.serialise import Frames

# Opens a file for writing bytes that appears under its name when the block ends without an error.
CreateFile = Callable[[str], contextlib.AbstractContextManager[IO[bytes]]]


def create_local_file(path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Creates a file of this machine; see `files.open_whole`."""
    return open_whole(path, "wb")


def write_shard(
    path: str,
    blocks: Iterable[Frames],
    counts: Mapping[str, int],
    create: CreateFile = create_local_file,
) -> ShardEntry:
    """Writes a shard and its index.

    Args:
        path: the shard; its index stands next to it.
        counts: what the shard holds; read after the last block, so the maker may still be counting.
        create: creates a file; another one for file systems that are not this machine's.

    Returns:
        The shard's entry for the description.

    Example:
        >>> import tempfile
        >>> path, none = f"{tempfile.mkdtemp()}/x.tfrecord", (np.zeros(0, np.uint8), np.zeros(0))
        >>> write_shard(path, [none], {"examples": 0})
        ShardEntry(file='x.tfrecord', bytes=0, crc32c='00000000', counts={'examples': 0})
    """
    checksum = google_crc32c.Checksum()
    sizes: list[NDArray[np.int64]] = []
    with create(path) as file:
        for data, block_sizes in blocks:
            file.write(data.data)
            checksum.update(data)
            sizes.append(block_sizes)
    all_sizes = np.concatenate([np.zeros(0, np.int64), *sizes])
    with create(index_path(path)) as file:
        file.write(all_sizes.astype("<u4").tobytes())
    return ShardEntry(
        file=base_name(path),
        bytes=int(all_sizes.sum()),
        crc32c=checksum.digest().hex(),
        counts=dict(counts),
    )
