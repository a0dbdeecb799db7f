"""Checking an export: it is loaded again by its own runtime and must give what the model gives."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.engine import check_finite
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.vocabulary import MASK, Vocabulary

Arrays = Mapping[str, Any]
Ask = Callable[[str, Arrays], Arrays]
"""Calls a signature with arrays by the names of its inputs, texts as bytes."""

_TIMED, _TIMED_LENGTH = "serving_default", 32
# Of the range of an output's numbers, and last places (of float32) of the largest of them: runtimes
# add in another order, and numbers around 10,000 are themselves no finer than a thousandth.
_TOLERANCE, _LAST_PLACES = 1e-4, 16


class InputSpec(NamedTuple):
    """An input: its sizes, None where one is free, and whether it holds texts."""

    sizes: Sequence[int | None]
    is_text: bool = False


Specs = Mapping[str, Mapping[str, InputSpec]]
"""Of each signature its inputs by name."""


@dataclass(frozen=True)
class Verification:
    """The result of a comparison; `milliseconds` is the fastest of five calls of 32 tokens."""

    calls: int
    largest_difference: float
    timed: str
    milliseconds: float


def verify_export(
    specs: Specs, expected: Ask, found: Ask, vocabulary: Vocabulary, config: BertConfig
) -> Verification:
    """Compares every signature of an export with the model, at two sizes."""
    calls, positions = [], config.max_position_embeddings
    segments = min(2, config.type_vocab_size)
    for name, inputs in specs.items():
        for rows in (1, 3):
            length = min(4 + 3 * rows, positions)
            arrays = random_inputs(inputs, vocabulary, rows, length, segments)
            both = _as_arrays(name, expected(name, arrays)), _as_arrays(name, found(name, arrays))
            calls.append(both)
    timed = _TIMED if _TIMED in specs else next(iter(specs))
    arrays = random_inputs(specs[timed], vocabulary, 1, min(_TIMED_LENGTH, positions))
    difference, times = largest_difference(calls), list[float]()
    for _ in range(5):
        start = time.perf_counter()
        found(timed, arrays)
        times.append(1000 * (time.perf_counter() - start))
    return Verification(len(calls), difference, timed, min(times))


def _as_arrays(signature: str, outputs: Arrays) -> dict[str, np.ndarray]:
    """Values of tensors; strings as NumPy's bytes instead of Python objects."""
    arrays = {f"{signature}.{name}": np.asarray(tensor) for name, tensor in outputs.items()}
    return {name: x.astype("S") if x.dtype == object else x for name, x in arrays.items()}


def random_inputs(
    inputs: Mapping[str, InputSpec],
    vocabulary: Vocabulary,
    rows: int,
    length: int,
    segments: int = 1,
) -> dict[str, np.ndarray]:
    """Random ids, or texts of the vocabulary's own tokens, for one signature."""
    draws, arrays = np.random.default_rng(rows), dict[str, np.ndarray]()
    for name, (sizes, is_text) in inputs.items():  # a row may hold several choices
        if is_text:
            shape = [rows, *(size or 1 for size in sizes[1:])]
            texts = [_text(vocabulary, draws, max(1, length - 4)) for _ in range(math.prod(shape))]
            arrays[name] = np.array(texts).reshape(shape)
        else:
            shape = [rows, *(size or 1 for size in sizes[1:-1]), length]
            arrays[name] = _random_feature(name, shape, len(vocabulary), segments, draws)
    return arrays


def _random_feature(
    name: str, shape: Sequence[int], vocab_size: int, segments: int, draws: np.random.Generator
) -> np.ndarray:
    """Ids, a mask with some padding, segments, or positions of the row."""
    length = shape[-1]
    if name == "input_mask":
        lengths = draws.integers(1, length, [*shape[:-1], 1], endpoint=True)
        return (np.arange(length) < lengths).astype(np.int32)
    below = {"input_ids": vocab_size, "segment_ids": segments}.get(name, length)
    return draws.integers(0, below, list(shape), np.int32)


def _text(vocabulary: Vocabulary, draws: np.random.Generator, count: int) -> bytes:
    words = draws.choice(np.array(vocabulary.tokens), count).tolist()
    return " ".join([*words, MASK, words[0]]).encode()


def largest_difference(calls: Sequence[Sequence[Mapping[str, np.ndarray]]]) -> float:
    """Compares the outputs of some calls: those that were expected, and those that were found.

    Numbers may differ by rounding, which depends on how far apart the numbers of that output are in
    all calls, and how large. Everything else must be equal.

    Example:
        >>> large, changed = {"score": np.float32([0, 9999])}, {"score": np.float32([0.5, 9999])}
        >>> largest_difference([(large, changed)])
        0.5
    """
    largest = 0.0
    for name in sorted({name for call in calls for outputs in call for name in outputs}):
        columns = zip(*calls, strict=True)
        both = [[outputs[name] for outputs in some if name in outputs] for some in columns]
        largest = max(largest, _difference(name, *both))
    return largest


def _difference(name: str, expected: list[np.ndarray], found: list[np.ndarray]) -> float:
    largest = math.inf
    for array in expected:
        if array.dtype.kind == "f":
            check_finite({name: array}, "the model")  # another export would hold the same
    if [array.shape for array in expected] == [array.shape for array in found]:
        ours, theirs = (np.concatenate([*map(np.ravel, arrays)]) for arrays in (expected, found))
        if np.array_equal(ours, theirs):
            return 0.0
        if ours.dtype.kind == theirs.dtype.kind == "f":
            largest = float(np.abs(ours.astype(np.float64) - theirs).max())
            finest = np.spacing(np.abs(ours).max().astype(np.float32))
            if largest <= _TOLERANCE * np.ptp(ours) + _LAST_PLACES * finest:
                return largest
    fault = f"is not what the model gives (largest difference {largest:.2g})"
    raise UserError(f"`{name}` {fault}; export it again.")
