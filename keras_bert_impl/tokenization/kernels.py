"""The two kernels of tensorflow-text, called without the wrappers around them.

Both work in eager mode and in graphs; for a single line the wrappers would cost more than the work.
The two libraries are loaded without the package around them, which loads twenty more.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import tensorflow as tf

_MODEL_BUILDER = "tensorflow_text.core.pybinds.pywrap_fast_wordpiece_tokenizer_model_builder"


def _package_folder() -> Path:
    spec = importlib.util.find_spec("tensorflow_text")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'tensorflow_text'", name="tensorflow_text")
    return Path(spec.origin).parent


def wordpiece_model_builder() -> ModuleType:
    """The extension module that builds models of the kernel that cuts."""
    if _MODEL_BUILDER in sys.modules:
        return sys.modules[_MODEL_BUILDER]
    path = _package_folder() / "core" / "pybinds" / f"{_MODEL_BUILDER.rpartition('.')[2]}.so"
    spec = importlib.util.spec_from_file_location(_MODEL_BUILDER, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Under its own name, so that the package, if it is imported later, does not load it again.
    sys.modules[_MODEL_BUILDER] = module
    return module


_OPERATIONS = _package_folder() / "python" / "ops"
_normalizer = tf.load_op_library(str(_OPERATIONS / "_fast_bert_normalizer.so"))
_wordpiece = tf.load_op_library(str(_OPERATIONS / "_fast_wordpiece_tokenizer.so"))


class Pieces(NamedTuple):
    """The pieces of many lines: one flat tensor for each property.

    Attributes:
        ids: int64 [pieces].
        row_splits: line i has the pieces from row_splits[i] to row_splits[i + 1],
            int64 [lines + 1].
        starts: the byte of the line at which a piece begins, int64 [pieces].
        ends: the byte behind a piece's last, int64 [pieces].
    """

    ids: Any
    row_splits: Any
    starts: Any
    ends: Any


class Replaced(NamedTuple):
    """Lines in which characters were replaced.

    Attributes:
        lines: string [lines].
        places: for each byte of a replaced line and for its end, the byte of the original line at
            which the character stands that it came from, int64 [places]; empty unless asked for.
        row_splits: line i has the places from row_splits[i] to row_splits[i + 1],
            int64 [lines + 1].
    """

    lines: Any
    places: Any
    row_splits: Any


def replace_characters(lines: Any, normalizer_model: Any, with_places: bool = False) -> Replaced:
    """Replaces the characters of lines as the model says."""
    return Replaced(
        *_normalizer.fast_bert_normalize(lines, normalizer_model, get_offsets=with_places)
    )


def cut_pieces(lines: Any, wordpiece_model: Any) -> Pieces:
    """Cuts lines into pieces at white space, punctuation and by the model's vocabulary."""
    _, ids, row_splits, starts, ends = _wordpiece.fast_wordpiece_tokenize_with_offsets(
        lines, wordpiece_model
    )
    return Pieces(ids, row_splits, starts, ends)
