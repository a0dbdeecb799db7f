"""Mends that can be taken back, to see that the cases find what they mend."""

from collections.abc import Callable


def _special_files() -> None:
    """A pipe is waited for, and a device read without an end."""
    from keras_bert_impl import files

    files.is_special = lambda _path: False


def _types() -> None:
    """Values of files of ours have the types that they have."""
    from keras_bert_impl import json_files

    json_files._typed = lambda value, _wanted, _path: value


TAKEN_BACK: dict[str, Callable[[], None]] = {
    "special_files": _special_files,
    "types": _types,
}
