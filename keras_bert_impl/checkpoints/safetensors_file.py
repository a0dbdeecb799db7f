"""Reading and writing safetensors files; a header is believed only after it was checked."""

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import open_input, open_whole
from keras_bert_impl.json_files import bounded_loads

_DTYPES: dict[str, Any] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}
_LONGEST_HEADER = 100 * 1024 * 1024  # the format's own limit, in bytes
_MOST_AXES = 64  # NumPy has no more


@dataclasses.dataclass(frozen=True)
class TensorEntry:
    """Where one tensor lies in a file.

    Attributes:
        dtype: the format's code, e.g. "F32" or "BF16".
        shape: the tensor's shape.
        start: the first byte, counted from the file's beginning.
        size: the number of bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int


def read_header(path: str | os.PathLike[str]) -> dict[str, TensorEntry]:
    """Reads and checks a file's header."""
    with open_input(path) as file:
        file_size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if file_size < 8 or length > min(file_size - 8, _LONGEST_HEADER):
            raise _broken(path, f"its header claims {length} bytes of {file_size}")
        header = _parse(path, file.read(length))
    start = 8 + length
    entries = {
        name: _check_entry(path, name, entry, start)
        for name, entry in header.items()
        if name != "__metadata__"
    }
    end = start
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].size)):
        if entry.start != end:
            fault = "overlaps another tensor" if entry.start < end else "leaves a gap before it"
            raise _broken(path, f"tensor {shown(name)} {fault}")
        end = entry.start + entry.size
    if end != file_size:
        raise _broken(path, f"its tensors end at byte {end}, but the file has {file_size}")
    return entries


def read_tensor(path: str | os.PathLike[str], entry: TensorEntry) -> np.ndarray:
    """Reads one tensor that `read_header` described; no other byte of the file is touched."""
    with open_input(path) as file:
        file.seek(entry.start)
        content = file.read(entry.size)
    if len(content) != entry.size:
        raise _broken(path, "it became shorter while it was read")
    return np.frombuffer(content, _DTYPES[entry.dtype]).reshape(entry.shape)


def write_safetensors(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray]) -> None:
    """Writes tensors in the order of their names; the file appears when it is complete.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> write_safetensors(target, {"bias": np.array([1.0, 2.0], np.float32)})
        >>> read_tensor(target, read_header(target)["bias"]).tolist()
        [1.0, 2.0]
    """
    # The largest numbers first: every tensor then starts at a multiple of its number's size.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # transformers asks for it
    end = 0
    for name in names:
        array = tensors[name]
        offsets = [end, end + array.nbytes]
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": offsets,
        }
        end = offsets[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open_whole(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)


def _parse(path: str | os.PathLike[str], text: bytes) -> dict[str, Any]:
    try:
        header = bounded_loads(text, _no_duplicates)
    except (ValueError, RecursionError) as error:
        raise _broken(path, "its header is not JSON with unique names") from error
    if not isinstance(header, dict):
        raise _broken(path, "its header is no JSON object")
    return header


def _no_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("duplicate name")
    return values


def _check_entry(path: str | os.PathLike[str], name: str, entry: Any, start: int) -> TensorEntry:
    if not isinstance(entry, dict):
        raise _broken(path, f"tensor {shown(name)} has no description")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise _broken(path, f"tensor {shown(name)} has the unknown type {shown(dtype)}")
    if not _whole_numbers(shape) or len(shape) > _MOST_AXES:
        raise _broken(path, f"tensor {shown(name)} has an impossible shape")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise _broken(path, f"tensor {shown(name)} has impossible offsets")
    size = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if offsets[1] - offsets[0] != size:
        raise _broken(
            path,
            f"tensor {shown(name)} of {dtype} {shown(shape)} does not fill the "
            f"{offsets[1] - offsets[0]} bytes that it claims",
        )
    return TensorEntry(dtype, tuple(shape), start + offsets[0], size)


def _whole_numbers(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
        for value in values
    )


def _broken(path: str | os.PathLike[str], fault: str) -> UserError:
    return UserError(
        f"{Path(path)}: is no whole safetensors file ({fault}); download or write it again."
    )
