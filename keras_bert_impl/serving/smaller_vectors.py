"""Vectors in fewer bytes: fewer numbers, a byte for each, or a bit for each.

int8 and ubinary are sentence-transformers' `quantize_embeddings`, number by number.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError

FLOAT32, INT8, UBINARY = "float32", "int8", "ubinary"
_NUMBERS = {FLOAT32: "<f4", INT8: "i1", UBINARY: "u1"}
TYPES: dict[str, np.dtype[Any]] = {kind: np.dtype(one) for kind, one in _NUMBERS.items()}
"""What a number of a vector is, or of ubinary eight of them."""

Vectors = NDArray[np.float32]


def in_base64(vector: Any, asked: Mapping[str, Any]) -> str:
    """A vector's bytes in base64, little-endian, of the `vector_type` that was asked for.

    Example:
        >>> in_base64([1.0], {}), in_base64([255], {"vector_type": "ubinary"})
        ('AACAPw==', '/w==')
    """
    number = TYPES[asked.get("vector_type") or FLOAT32]
    return base64.b64encode(np.asarray(vector, number).tobytes()).decode()


def check_size(dimensions: int | None, width: int) -> int:
    """How many numbers are kept of `width`; None is all."""
    is_count = isinstance(dimensions, int | np.integer) and not isinstance(dimensions, bool)
    if dimensions is not None and not (is_count and 1 <= dimensions <= width):
        numbers = f"{width} numbers; give 1 to {width}"
        raise UserError(f"`dimensions={dimensions}`: the model's vectors have {numbers}.")
    return dimensions or width


def unit(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def truncated(vectors: Vectors, dimensions: int | None, normalize: bool) -> Vectors:
    """The first numbers of each vector; None is all.

    Example:
        >>> truncated(np.array([[3, 4, 12]], np.float32), 2, normalize=True).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    size = check_size(dimensions, vectors.shape[-1])
    if size == vectors.shape[-1]:
        return vectors
    return unit(vectors[..., :size]) if normalize else vectors[..., :size]


def ranges_of(blocks: Iterable[Vectors]) -> Vectors:
    """The least and the largest value of each number, float32 [2, width]: the ranges of int8."""
    found = [np.stack([block.min(axis=0), block.max(axis=0)]) for block in blocks if len(block)]
    return np.stack([np.min(found, axis=0)[0], np.max(found, axis=0)[1]])


def quantized(vectors: Vectors, kind: str, ranges: Vectors | None = None) -> NDArray[Any]:
    """Vectors of a type of `TYPES`; of ubinary [vectors, width / 8], a bit where a number is > 0.

    int8 needs the `ranges` of `ranges_of`; numbers outside are cut off.

    Example:
        >>> quantized(np.array([[0.5, -1, 2]], np.float32), UBINARY).tolist()
        [[160]]
    """
    if kind == UBINARY:
        return np.packbits(vectors > 0, axis=-1)
    if kind == FLOAT32:
        return vectors
    least, steps = _steps(ranges)
    steps = np.where(steps == 0, np.float32(1), steps)
    return (np.clip(np.floor((vectors - least) / steps), 0, 255) - 128).astype(np.int8)


def restored(vectors: NDArray[Any], width: int, ranges: Vectors | None = None) -> Vectors:
    """float32 vectors of those of any type: of int8 the middle of each step, of a bit 1 or -1.

    Example:
        >>> restored(np.array([[160]], np.uint8), 3).tolist()
        [[1.0, -1.0, 1.0]]
    """
    if vectors.dtype == TYPES[UBINARY]:
        return np.unpackbits(vectors, axis=-1, count=width) * np.float32(2) - 1
    if vectors.dtype != TYPES[INT8]:
        return vectors
    least, steps = _steps(ranges)
    return (vectors + np.float32(128.5)) * steps + least


def _steps(ranges: Vectors | None) -> tuple[Vectors, Vectors]:
    assert ranges is not None, "int8 has ranges"
    return ranges[0], (ranges[1] - ranges[0]) / 255
