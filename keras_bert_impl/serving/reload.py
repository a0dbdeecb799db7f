"""Calling a SavedModel in a process that knows nothing of the model that it was made from."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

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
    """What the fresh process found.

    Attributes:
        outputs: of each call.
        milliseconds: of the call that was timed, the fastest of five.
    """

    outputs: list[Arrays]
    milliseconds: float


class ReloadError(Exception):
    """The fresh process failed; the message is the last line it wrote."""


def call_in_fresh_process(folder: Path, calls: Sequence[Call], timed: Call) -> Reply:
    """Loads a SavedModel in a new Python process, with tensorflow and tensorflow_text alone.

    Args:
        folder: the SavedModel.
        calls: what to ask it.
        timed: what to ask it against the clock.

    Raises:
        ReloadError: it cannot be loaded or called there.
    """
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
