"""Safetensors files by the format's own library, which checks a header before it is believed."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by it
import numpy as np

from keras_bert_impl.errors import UserError, reading
from keras_bert_impl.files import StrPath, check_file, whole_files
from keras_bert_impl.json_files import bounded_loads, json_text


def read_shapes(path: StrPath) -> dict[str, tuple[int, ...]]:
    """The shapes of a file's tensors by their names; no number is read."""
    with _opened(path) as file:
        names = file.keys()
        return {name: tuple(file.get_slice(name).get_shape()) for name in names}


def read_tensor(path: StrPath, name: str) -> np.ndarray:
    """Reads one tensor that `read_shapes` found."""
    with _opened(path) as file:
        try:
            return np.asarray(file.get_tensor(name))
        except AttributeError as error:  # float8, which NumPy has no type for
            fault = f"{name} holds {file.get_slice(name).get_dtype()}, which is not read here"
            raise UserError(f"{path}: {fault}; name the model before it was quantized.") from error


def read_metadata(path: StrPath) -> dict[str, str]:
    """What a file says besides its tensors."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


def write_safetensors(path: StrPath, tensors: Mapping[str, np.ndarray], **metadata: str) -> None:
    """Writes tensors, and perhaps more metadata; the file appears when it is complete."""
    from safetensors.numpy import save_file

    path = Path(path)
    plain = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    with whole_files(path.parent, path.name) as aside:
        # transformers asks for the metadata.
        save_file(plain, aside / path.name, metadata={"format": "pt", **metadata})
        # The library leaves the mode of a temporary file: no other user could read it.
        (aside / path.name).chmod(aside.stat().st_mode & 0o666)
        if metadata:
            _sort_metadata(aside / path.name)


def _sort_metadata(path: Path) -> None:
    """Gives the metadata a fixed order: the library writes them in another one every time."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = bounded_loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        file.seek(8)
        text = json_text(header, separators=(",", ":"), ensure_ascii=False)
        file.write(text.encode().ljust(size))


@contextlib.contextmanager
def _opened(path: StrPath) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    check_file(path)
    with reading(path, "a whole safetensors file", "download or write it again"):
        try:
            with safe_open(path, framework="np") as file:
                yield file
        except SafetensorError as error:
            raise ValueError(str(error)) from error
