"""HDF5 files of weights, as Keras and transformers write them.

HDF5 can lead elsewhere: links to other files, data kept outside, filters that unpack a megabyte to
gigabytes. No library writes weights that way, and h5py would follow all of it. So a file is read
only where each of its tensors lies plainly in it, with as many bytes as its shape needs.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from keras_bert_impl.errors import reading
from keras_bert_impl.files import StrPath, check_file, whole_files

Shapes = dict[str, tuple[int, ...]]

_MOST_ENTRIES, _DEEPEST = 100_000, 16


def read_hdf5_shapes(path: StrPath) -> Shapes:
    """The shapes of a file's tensors by their paths in it; no number is read."""
    with _opened(path) as file:
        return {name: tuple(data.shape) for name, data in _tensors(file)}


def read_hdf5_tensor(path: StrPath, name: str) -> np.ndarray:
    """Reads one tensor that `read_hdf5_shapes` found."""
    with _opened(path) as file:
        data = file[name]
        array = np.asarray(data[()])
        return array.view(ml_dtypes.bfloat16) if _is_bfloat16(data) else array


def write_hdf5(path: StrPath, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes tensors by their paths; the file appears when it is complete."""
    import h5py

    path = Path(path)
    with whole_files(path.parent, path.name) as aside, h5py.File(aside / path.name, "w") as file:
        for name, array in tensors.items():
            data = file.create_dataset(name, data=array)
            if array.dtype == ml_dtypes.bfloat16:
                data.attrs["dtype"] = "bfloat16"  # as Keras says it


@contextlib.contextmanager
def _opened(path: StrPath) -> Iterator[Any]:
    import h5py

    check_file(path)
    with (
        reading(path, "an HDF5 file of weights", "get it again, or save the model again"),
        h5py.File(path, "r") as file,
    ):
        try:
            yield file
        except KeyError as error:  # of h5py, with a whole sentence
            raise ValueError(error.args[0]) from error


def _tensors(file: Any) -> Iterator[tuple[str, Any]]:
    """All datasets of an open file with their paths; refuses what leads out of it."""
    import h5py

    groups, entries, stored, size = [("", file, 0)], 0, 0, file.id.get_filesize()
    while groups:
        prefix, group, depth = groups.pop()
        for key in group:
            entries += 1
            name = f"{prefix}{key}"
            if entries > _MOST_ENTRIES or depth > _DEEPEST:
                raise ValueError("too many entries, or nested too deep")
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                raise ValueError(f"a link instead of a tensor: {name}")
            one = group[key]
            if isinstance(one, h5py.Group):
                groups.append((f"{name}/", one, depth + 1))
            elif isinstance(one, h5py.Dataset) and one.shape is not None:
                _check_plain(name, one)
                stored += one.id.get_storage_size()
                if stored > size:  # links to the same one are tensors of their own
                    raise ValueError("tensors that together are larger than the file")
                yield name, one


def _is_bfloat16(data: Any) -> bool:
    """Whether a dataset holds what Keras writes of bfloat16, for which HDF5 has no type."""
    return data.attrs.get("dtype") == "bfloat16" and data.dtype.itemsize == 2


def _check_plain(name: str, data: Any) -> None:
    if data.is_virtual or data.external:
        raise ValueError(f"a tensor that lies in another file: {name}")
    if data.dtype.kind not in "fiub" and not _is_bfloat16(data):
        raise ValueError(f"no numbers: {name}")
    if data.id.get_storage_size() != data.size * data.dtype.itemsize:
        raise ValueError(f"a tensor that is compressed or cut off: {name}")
