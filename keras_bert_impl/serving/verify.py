"""Checking a SavedModel: a fresh process loads it and must give what the model gives."""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.opened_model import OpenedModel
from keras_bert_impl.serving.signatures import ServedModel
from keras_bert_impl.tokenization.vocabulary import MASK

Arrays = dict[str, np.ndarray]
_TIMES, _MILLISECONDS = 5, "milliseconds"


class Call(NamedTuple):
    """One call of a signature.

    Attributes:
        signature: its name.
        inputs: arrays by the names of its inputs; texts as bytes.
    """

    signature: str
    inputs: Arrays


class Reply(NamedTuple):
    """The reply of the fresh process.

    Attributes:
        outputs: of each call.
        milliseconds: of the call that was timed, the fastest of five.
    """

    outputs: list[Arrays]
    milliseconds: float


class ReloadError(Exception):
    """The fresh process failed; the message is the last line it wrote."""


def call_in_fresh_process(folder: Path, calls: Sequence[Call], timed: Call) -> Reply:
    """Loads a SavedModel in a new Python process, with tensorflow and tensorflow_text alone."""
    program = f"from {__name__} import answer_calls; answer_calls()"
    with tempfile.TemporaryDirectory() as scratch:
        questions, answers = Path(scratch) / "calls.npz", Path(scratch) / "outputs.npz"
        _save(questions, [(call.signature, call.inputs) for call in (*calls, timed)])
        command = [sys.executable, "-c", program, str(folder), str(questions), str(answers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReloadError((done.stderr.strip().splitlines() or ["it gave no reason"])[-1])
        *outputs, (_, time_taken) = _load(answers)
        return Reply([arrays for _, arrays in outputs], float(time_taken[_MILLISECONDS]))


def answer_calls() -> None:
    """The fresh process: reads the calls that the command line names, writes their outputs."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    folder, questions, answers = sys.argv[1:]
    loaded = tf.saved_model.load(folder)

    def ask(name: str, inputs: Arrays) -> Arrays:
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        result = loaded.signatures[name](**tensors)
        return {key: as_array(value) for key, value in result.items()}

    *calls, timed = _load(Path(questions))
    outputs = [(name, ask(name, inputs)) for name, inputs in calls]
    times = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        ask(*timed)
        times.append(time.perf_counter() - start)
    fastest = {_MILLISECONDS: np.array(1000 * min(times))}
    _save(Path(answers), [*outputs, (timed[0], fastest)])


def as_array(tensor: object) -> np.ndarray:
    """A tensor's values; strings as NumPy's bytes instead of Python objects.

    Example:
        >>> as_array(np.array([b"a", b"bc"], object)).dtype
        dtype('S2')
    """
    array = np.asarray(tensor)
    return array.astype("S") if array.dtype == object else array


def _save(path: Path, entries: Sequence[tuple[str, Arrays]]) -> None:
    arrays = {
        f"{number}|{name}|{key}": value
        for number, (name, values) in enumerate(entries)
        for key, value in values.items()
    }
    np.savez(path, **arrays)  # type: ignore[arg-type]


def _load(path: Path) -> list[tuple[str, Arrays]]:
    entries: dict[int, tuple[str, Arrays]] = {}
    with np.load(path) as file:
        for full_name in file.files:
            number, name, key = full_name.split("|")
            entries.setdefault(int(number), (name, {}))[1][key] = file[full_name]
    return [entries[number] for number in sorted(entries)]


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
    """Loads a SavedModel in a fresh process and compares every signature with the model.

    Each signature is called twice, with another number of rows and another length.
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
    compared = [
        [{f"{call.signature}.{name}": array for name, array in one.items()} for one in both]
        for call, *both in zip(calls, expected, reply.outputs, strict=True)
    ]
    difference = largest_difference(compared)
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
