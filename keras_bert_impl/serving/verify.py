"""Checking a SavedModel: a fresh process loads it and must give what the model gives."""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.reload import (
    Arrays,
    Call,
    ReloadError,
    as_array,
    call_in_fresh_process,
)
from keras_bert_impl.serving.signatures import ServedModel
from keras_bert_impl.tokenization.vocabulary import MASK

_TIMED, _TIMED_LENGTH = "serving_default", 32
TOLERANCE = 1e-4  # the same graph on the same machine; threads may add in another order


@dataclass(frozen=True)
class Verification:
    """What a comparison found.

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
    """Loads a SavedModel in a fresh process and compares every signature with the model.

    Each signature is called twice, with another number of rows and another length.

    Args:
        served: the signatures as they are before they are written.
        opened: the model that they serve.
        folder: the SavedModel.

    Raises:
        UserError: the SavedModel cannot be loaded there, or gives something else.
    """
    calls = [
        Call(name, _inputs(served, name, opened, rows)) for name in served.names for rows in (1, 3)
    ]
    name = _TIMED if _TIMED in served.names else served.names[0]
    timed = Call(name, _inputs(served, name, opened, 1, _TIMED_LENGTH))
    expected = [_call_here(served, call) for call in calls]
    try:
        reply = call_in_fresh_process(Path(folder), calls, timed)
    except ReloadError as error:
        raise UserError(f"the SavedModel cannot be loaded again ({error}).") from error
    difference = max(_difference(*pair) for pair in zip(expected, reply.outputs, strict=True))
    if not difference <= TOLERANCE:
        raise UserError(
            f"the SavedModel's answers differ by {difference:.2g} from the model's; export it "
            "again."
        )
    return Verification(served.names, len(calls), difference, name, reply.milliseconds)


def _call_here(served: ServedModel, call: Call) -> Arrays:
    outputs = served.call(call.signature, call.inputs)
    return {name: as_array(value) for name, value in outputs.items()}


def _inputs(
    served: ServedModel, name: str, opened: OpenedModel, rows: int, length: int | None = None
) -> Arrays:
    """Random ids, or texts of the vocabulary's own tokens, for one signature."""
    draws = np.random.default_rng(rows)
    words = (length or 9) - 4  # beside them [MASK], a word again, [CLS] and [SEP]
    length = min(length or 4 + 3 * rows, opened.model.config.max_position_embeddings)
    arrays: Arrays = {}
    for spec in served.specs(name):
        sizes = spec.shape.as_list()  # a row may hold several choices
        shape = [rows, *sizes[1:-1], length]
        if spec.dtype == tf.string:
            shape = [rows, *sizes[1:]]
            texts = [_text(opened, draws, words) for _ in range(math.prod(shape))]
            arrays[spec.name] = np.array(texts).reshape(shape)
        elif spec.name == "input_ids":
            arrays[spec.name] = draws.integers(0, len(opened.text.vocabulary), shape, np.int32)
        elif spec.name == "input_mask":
            lengths = draws.integers(1, length, [*shape[:-1], 1], endpoint=True)
            arrays[spec.name] = (np.arange(length) < lengths).astype(np.int32)
        elif spec.name == "segment_ids":
            arrays[spec.name] = np.zeros(shape, np.int32)
        else:  # positions
            arrays[spec.name] = draws.integers(0, length, [rows, 2], np.int32)
    return arrays


def _text(opened: OpenedModel, draws: np.random.Generator, count: int) -> bytes:
    words = draws.choice(np.array(opened.text.vocabulary.tokens), count).tolist()
    return " ".join([*words, MASK, words[0]]).encode()


def _difference(expected: Arrays, found: Arrays) -> float:
    """The largest difference of numbers; infinite where anything else differs."""
    if set(expected) != set(found):
        return math.inf
    return max(_array_difference(array, found[name]) for name, array in expected.items())


def _array_difference(array: np.ndarray, other: np.ndarray) -> float:
    if array.shape != other.shape:
        return math.inf
    if array.dtype.kind == "S":
        return 0.0 if np.array_equal(array, other) else math.inf
    difference = np.abs(array.astype(np.float64) - other.astype(np.float64))
    largest = float(difference.max(initial=0.0))
    return largest if math.isfinite(largest) else math.inf
