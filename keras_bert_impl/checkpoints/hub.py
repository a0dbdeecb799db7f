"""Models of the Hugging Face hub by their names, through the cache that all its programs share.

Only configuration, safetensors and vocabulary files are asked for: never a pickle, never code.
What lies in the cache is taken without asking the network.
"""

import re
from pathlib import Path

from keras_bert_impl.checkpoints.sentence_modules import SENTENCE_PATTERNS
from keras_bert_impl.checkpoints.sources import (
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    INDEX_FILE,
    SAVE_AGAIN,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_there
from keras_bert_impl.json_files import read_json_object

_FILES = (
    CONFIG_FILE,
    WEIGHTS_FILE,
    INDEX_FILE,
    "model-*-of-*.safetensors",
    VOCABULARY_FILE,
    FAST_TOKENIZER_FILE,
    TOKENIZER_FILE,
    *SENTENCE_PATTERNS,
)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def may_be_hub_name(text: str) -> bool:
    """Whether something that is no path here could be the name of a model on the hub.

    A path into a folder that exists is a path, although "folder/file" has the form of a name.

    Example:
        >>> [may_be_hub_name(text) for text in ("klue/bert-base", "./klue", "a/b/c", "x.ckpt")]
        [True, False, False, False]
    """
    into_folder = "/" in text and Path(text).parent.is_dir()
    return bool(_NAME.fullmatch(text)) and ".ckpt" not in text and not into_folder


def find_on_hub(name: str) -> Path:
    """The folder of a model of the hub: from the cache, else downloaded into it."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise UserError(
            f"{name}: no such file or folder, and models of the Hugging Face hub need the package "
            "huggingface_hub; check the path, or pip install huggingface_hub."
        ) from error
    folder = _cached(name)
    if folder is None:
        try:
            folder = Path(snapshot_download(name, allow_patterns=list(_FILES)))
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise UserError(
                f"{name}: no such file or folder, and the Hugging Face hub did not give a model of "
                f"that name ({_reason(error)}); check the name. Without internet, run hf download "
                f"{name} elsewhere, copy the folder that it prints, and name the copy."
            ) from error
    if missing := _missing_weights(folder):
        raise UserError(
            f"{name}: the Hugging Face hub has no {missing} of it (a pickle is never opened "
            f"here); name a model that has one, or {SAVE_AGAIN}."
        )
    return folder


def _cached(name: str) -> Path | None:
    """The folder in the cache; None where the model, or a file of it that is needed, is missing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        found = snapshot_download(name, allow_patterns=list(_FILES), local_files_only=True)
    except (HfHubHTTPError, OSError, ValueError):
        return None
    folder = Path(found)
    vocabulary = any((folder / file).is_file() for file in (VOCABULARY_FILE, FAST_TOKENIZER_FILE))
    whole = vocabulary and (folder / CONFIG_FILE).is_file() and not _missing_weights(folder)
    return folder if whole else None


def _missing_weights(folder: Path) -> str | None:
    """The first file of weights that is not there; None if all are."""
    if (folder / WEIGHTS_FILE).is_file() or not (folder / INDEX_FILE).is_file():
        return None if (folder / WEIGHTS_FILE).is_file() else WEIGHTS_FILE
    shards = read_json_object(folder / INDEX_FILE).get("weight_map")
    files = sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else [WEIGHTS_FILE]
    return next((file for file in files if not is_there(folder / file)), None)


def _reason(error: Exception) -> str:
    """The first line of what went wrong, without the full stop."""
    first: str = next(iter(str(error).splitlines()), "") or type(error).__name__
    return first.strip().removeprefix("Got: ").removesuffix(".")
