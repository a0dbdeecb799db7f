"""Where a checkpoint may be written: nothing is replaced but an older checkpoint of its kind."""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    GOOGLE_CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    find_checkpoint,
    is_google_checkpoint,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import real_path
from keras_bert_impl.json_files import read_json_object
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GRAPHS_FOLDER = "openvino_graphs"
"""Where OpenVINO's graphs of a model are kept next to it; made again for other weights."""

_MODEL_FILES = (CONFIG_FILE, WEIGHTS_FILE, VOCABULARY_FILE, TOKENIZER_FILE, GRAPHS_FOLDER)
_OTHER_OUTPUT = "name another output, so that nothing of yours is replaced"


def check_folder(folder: str | os.PathLike[str], also: Collection[str] = ()) -> None:
    """Sees that a model directory may appear at a path: nothing is there, or an older one.

    Example:
        >>> import tempfile
        >>> check_folder(tempfile.mkdtemp())  # empty
    """
    folder = Path(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not all((folder / name).is_file() for name in (CONFIG_FILE, WEIGHTS_FILE)):
        raise UserError(f"{folder}: exists and is no model directory; {_OTHER_OUTPUT}.")
    check_nothing_else(folder, (*_MODEL_FILES, *also))


def check_nothing_else(folder: Path, known: Collection[str]) -> None:
    """Sees that a folder that will be replaced holds nothing but what is made anew."""
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if others:
        raise UserError(f"{folder}: holds {others[0]}, which would be lost; {_OTHER_OUTPUT}.")


def check_apart(source: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Sees that writing a checkpoint does not replace the one that it was made of.

    Example:
        >>> check_apart("downloads/bert", "medical_bert")
    """
    read = real_path(find_checkpoint(source))
    if real_path(Path(output)) in (read, *read.parents):
        raise UserError(
            f"{output}: the input {source} lies there and would be replaced; name another output."
        )


def check_beside(prefix: str | os.PathLike[str], config: BertConfig, text: TextSettings) -> None:
    """Sees that the files beside a TF1 checkpoint are free, or say what would be written."""
    folder = Path(prefix).parent
    beside: list[tuple[str, Callable[[Path], Any], Any]] = [
        (VOCABULARY_FILE, Vocabulary.load, text.vocabulary),
        (GOOGLE_CONFIG_FILE, _settings, config.to_google()),
    ]
    for name, read, wanted in beside:
        path = folder / name
        if path.exists() and not _says(path, read, wanted):
            raise UserError(f"{path}: exists and belongs to another model; {_OTHER_OUTPUT}.")
        if not path.exists() and is_google_checkpoint(prefix):
            raise UserError(f"{prefix}: exists, without its {name} beside it; {_OTHER_OUTPUT}.")
    # google's archives have no file of this name: where it is missing, it may be added.
    path = folder / TOKENIZER_FILE
    if path.exists() and not _says(path, _casing, text.as_json()):
        raise UserError(f"{path}: exists and belongs to another model; {_OTHER_OUTPUT}.")


def _says(path: Path, read: Callable[[Path], Any], wanted: Any) -> bool:
    try:
        return bool(read(path) == wanted)
    except UserError:
        return False  # what cannot be read is something else


def _casing(path: Path) -> dict[str, Any]:
    values, usual = read_json_object(path), {"do_lower_case": None, "strip_accents": None}
    further = ("unicode_form", "added_tokens_decoder", "max_input_chars_per_word")
    return {
        name: values.get(name) for name in (*usual, *further) if name in usual or name in values
    }


def _settings(path: Path) -> dict[str, Any]:
    return BertConfig.from_google_file(path).to_google()
