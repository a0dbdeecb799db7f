"""Mends that can be taken back, to see that the cases find what they mend."""

from collections.abc import Callable


def _depth() -> None:
    """JSON may be nested as deep as it likes."""
    from keras_bert_impl import json_files

    json_files._MOST_DEPTH = 10**9
    json_files.RecursionError = MemoryError  # a name of the module's own stands before Python's


def _special_files() -> None:
    """A pipe is waited for, and a device read without an end."""
    from keras_bert_impl import files

    files._SPECIAL = {}
    files._without_waiting = None


def _types() -> None:
    """Values of files of ours are of the types that they have."""
    from keras_bert_impl import json_files
    from pipelines.fine_tuning import start

    json_files.typed = lambda value, *_: value
    start._typed = lambda _one, value, _model: value


TAKEN_BACK: dict[str, Callable[[], None]] = {
    "depth": _depth,
    "special_files": _special_files,
    "types": _types,
}
