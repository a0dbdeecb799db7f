"""Checking a SavedModel: it is loaded again and must give what the model gives."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel
from keras_bert_impl.tokenization.vocabulary import MASK

Arrays = dict[str, np.ndarray]


class Call(NamedTuple):
    """One call of a signature.

    Attributes:
        signature: its name.
        inputs: arrays by the names of its inputs; texts as bytes.
    """

    signature: str
    inputs: Arrays


def load_again(folder: Path) -> Callable[[Call], Arrays]:
    """Loads a SavedModel as any program of TensorFlow does; gives what calls it."""
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    loaded = tf.saved_model.load(str(folder))

    def ask(call: Call) -> Arrays:
        tensors = {key: tf.constant(value) for key, value in call.inputs.items()}
        return _as_arrays(loaded.signatures[call.signature](**tensors))

    return ask


def _as_arrays(outputs: Mapping[str, object]) -> Arrays:
    """Values of tensors; strings as NumPy's bytes instead of Python objects."""
    arrays = {name: np.asarray(tensor) for name, tensor in outputs.items()}
    return {name: x.astype("S") if x.dtype == object else x for name, x in arrays.items()}


def milliseconds_of(call: Callable[[], object]) -> float:
    """The time of a call, the fastest of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


_TIMED, _TIMED_LENGTH = "serving_default", 32
# Of the range of an output's numbers, and last places (of float32) of the largest of them: runtimes
# add in another order, and numbers around 10,000 are themselves no finer than a thousandth.
_TOLERANCE, _LAST_PLACES = 1e-4, 16


@dataclass(frozen=True)
class Verification:
    """The result of a comparison.

    Attributes:
        signatures: the signatures that were called.
        calls: how many calls were compared.
        largest_difference: the largest absolute difference of any two numbers.
        timed: the signature that was called against the clock.
        milliseconds: such a call with a row of 32 tokens, the fastest of five.
    """

    signatures: tuple[str, ...]
    calls: int
    largest_difference: float
    timed: str
    milliseconds: float


def verify_saved_model(
    served: ServedModel, opened: OpenedModel, folder: str | os.PathLike[str]
) -> Verification:
    """Loads a SavedModel and compares every signature with the model.

    Each signature is called twice, with another number of rows and another length.
    """
    calls = [
        Call(name, _inputs(served, name, opened, rows)) for name in served.names for rows in (1, 3)
    ]
    name = _TIMED if _TIMED in served.names else served.names[0]
    timed = Call(name, _inputs(served, name, opened, 1, _TIMED_LENGTH))
    try:
        ask = load_again(Path(folder))
        compared = [
            [
                {f"{call.signature}.{name}": array for name, array in one.items()}
                for one in (_as_arrays(served.call(*call)), ask(call))
            ]
            for call in calls
        ]
    except (OSError, ValueError, LookupError, tf.errors.OpError) as error:
        raise UserError(f"the SavedModel cannot be loaded again ({reason_of(error)}).") from error
    difference = largest_difference(compared)
    milliseconds = milliseconds_of(lambda: ask(timed))
    return Verification(served.names, len(calls), difference, name, milliseconds)


def _inputs(
    served: ServedModel, name: str, opened: OpenedModel, rows: int, length: int | None = None
) -> Arrays:
    """Random ids, or texts of the vocabulary's own tokens, for one signature."""
    draws = np.random.default_rng(rows)
    words = (length or 9) - 4  # beside them [MASK], a word again, [CLS] and [SEP]
    length = min(length or 4 + 3 * rows, opened.model.config.max_position_embeddings)
    vocab_size = len(opened.text.vocabulary)
    arrays: Arrays = {}
    for spec in served.specs(name):
        sizes = spec.shape.as_list()  # a row may hold several choices
        if spec.dtype == tf.string:
            shape = [rows, *sizes[1:]]
            texts = [_text(opened, draws, words) for _ in range(math.prod(shape))]
            arrays[spec.name] = np.array(texts).reshape(shape)
        else:
            shape = [rows, *sizes[1:-1], length]
            arrays[spec.name] = random_feature(spec.name, shape, vocab_size, draws)
    return arrays


def random_feature(
    name: str, shape: Sequence[int], vocab_size: int, draws: np.random.Generator
) -> np.ndarray:
    """Gives numbers that an input of a model may have.

    Args:
        shape: [rows, ..., length].

    Returns:
        int32 of the shape: ids, a mask with some padding, one segment, or positions of the row.

    Example:
        >>> random_feature("segment_ids", [1, 3], 9, np.random.default_rng(0))
        array([[0, 0, 0]], dtype=int32)
    """
    length = shape[-1]
    if name == "input_mask":
        lengths = draws.integers(1, length, [*shape[:-1], 1], endpoint=True)
        return (np.arange(length) < lengths).astype(np.int32)
    below = {"input_ids": vocab_size, "segment_ids": 1}.get(name, length)
    return draws.integers(0, below, list(shape), np.int32)


def _text(opened: OpenedModel, draws: np.random.Generator, count: int) -> bytes:
    words = draws.choice(np.array(opened.text.vocabulary.tokens), count).tolist()
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
    if [array.shape for array in expected] == [array.shape for array in found]:
        ours, theirs = (np.concatenate([*map(np.ravel, arrays)]) for arrays in (expected, found))
        if np.array_equal(ours, theirs):
            return 0.0
        if ours.dtype.kind == theirs.dtype.kind == "f":
            largest = float(np.abs(ours.astype(np.float64) - theirs).max())
            finest = np.spacing(np.abs(ours).max().astype(np.float32))
            if largest <= _TOLERANCE * np.ptp(ours) + _LAST_PLACES * finest:
                return largest
    raise UserError(
        f"`{name}` is not what the model gives (largest difference {largest:.2g}); export it again."
    )
