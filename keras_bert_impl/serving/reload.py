"""Calling a SavedModel in a process that knows nothing of the model that it was made from."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]


class Call(NamedTuple):
    """One call of a signature.

    Attributes:
        signature: its name.
        inputs: arrays by the names of its inputs; texts as bytes.
    """

    signature: str
    inputs: Arrays


class ReloadError(Exception):
    """The fresh process failed; the message is the last line it wrote."""


def call_in_fresh_process(folder: Path, calls: Sequence[Call]) -> list[Arrays]:
    """Loads a SavedModel in a new Python process, with tensorflow and tensorflow_text alone.

    Args:
        folder: the SavedModel.
        calls: what to ask it.

    Returns:
        The outputs of each call.

    Raises:
        ReloadError: it cannot be loaded or called there.
    """
    program = f"from {__name__} import answer_calls; answer_calls()"
    with tempfile.TemporaryDirectory() as scratch:
        questions, answers = Path(scratch) / "calls.npz", Path(scratch) / "outputs.npz"
        _save(questions, [(call.signature, call.inputs) for call in calls])
        command = [sys.executable, "-c", program, str(folder), str(questions), str(answers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReloadError((done.stderr.strip().splitlines() or ["it gave no reason"])[-1])
        return [outputs for _, outputs in _load(answers)]


def answer_calls() -> None:
    """The fresh process: reads the calls that the command line names, writes their outputs."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    folder, questions, answers = sys.argv[1:]
    loaded = tf.saved_model.load(folder)
    outputs = []
    for name, inputs in _load(Path(questions)):
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        result = loaded.signatures[name](**tensors)
        outputs.append((name, {key: as_array(value) for key, value in result.items()}))
    _save(Path(answers), outputs)


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
