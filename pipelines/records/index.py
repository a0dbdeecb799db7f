"""Where each record of a shard begins: 4 bytes a record in a small file beside the shard."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_whole

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
