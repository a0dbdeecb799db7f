"""Models of the Hugging Face hub by their names, through the cache that all its programs share.

Only configuration, safetensors and vocabulary files are asked for: never a pickle, never code.
What lies in the cache is taken without asking the network.
"""

import contextlib
import re
from pathlib import Path

from keras_bert_impl.checkpoints.formats import keras_hub
from keras_bert_impl.checkpoints.sentence_modules import (
    SENTENCE_PATTERNS,
    STATIC_MODULE,
    STATIC_TYPE,
    module_folders,
)
from keras_bert_impl.checkpoints.sources import (
    ADDED_TOKENS_FILE,
    CONFIG_FILE,
    FAST_TOKENIZER_FILE,
    INDEX_FILE,
    KERAS_WEIGHTS_FILE,
    SAVE_AGAIN,
    SPECIAL_TOKENS_FILE,
    TF_INDEX_FILE,
    TF_WEIGHTS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import is_there
from keras_bert_impl.json_files import read_json_object

_FILES = (
    *(CONFIG_FILE, WEIGHTS_FILE, INDEX_FILE, "model-*-of-*.safetensors"),
    *(VOCABULARY_FILE, FAST_TOKENIZER_FILE, TOKENIZER_FILE, *SENTENCE_PATTERNS),
    *(ADDED_TOKENS_FILE, SPECIAL_TOKENS_FILE),
)
# What else holds a BERT; not downloaded where there are safetensors, which hold the same.
_OF_TENSORFLOW = (
    *(TF_WEIGHTS_FILE, TF_INDEX_FILE, "tf_model-*-of-*.h5"),
    *(KERAS_WEIGHTS_FILE, "task.json", "task.weights.h5", "preprocessor.json", "assets/*"),
)
_INDEX_OF = {WEIGHTS_FILE: INDEX_FILE, TF_WEIGHTS_FILE: TF_INDEX_FILE, KERAS_WEIGHTS_FILE: None}
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


def find_on_hub(name: str, revision: str | None = None) -> Path:
    """The folder of a model of the hub: from the cache where it is whole, else downloaded.

    `revision` is a branch, a tag or a commit; by default it is the newest one.
    """
    from huggingface_hub import snapshot_download

    missing: str | None = CONFIG_FILE
    at = f" (revision {revision})" if revision else ""
    everything = [*_FILES, *_OF_TENSORFLOW]
    steps = ((True, everything), (False, [CONFIG_FILE]), (False, [*_FILES]), (False, everything))
    for from_cache, files in steps:
        try:
            found = snapshot_download(
                name, revision=revision, allow_patterns=files, local_files_only=from_cache
            )
        except (OSError, ValueError) as error:  # the hub's own errors are among them
            if from_cache:
                continue
            raise UserError(
                f"{name}: no such file or folder, and the Hugging Face hub did not give a model of "
                f"that name ({reason_of(error).rstrip('.')}); check the name. Without internet, "
                f"run hf download {name}{at} elsewhere, copy the folder that it prints, and name "
                "the copy."
            ) from error
        if files == [CONFIG_FILE]:
            _check_is_bert(Path(found) / CONFIG_FILE)
            continue
        if (missing := _missing(Path(found), whole=from_cache)) is None:
            return Path(found)
        if not from_cache and missing != WEIGHTS_FILE:
            break
    raise UserError(
        f"{name}: the Hugging Face hub has no {missing} of it (a pickle is never opened here); "
        f"name a model that has one, or {SAVE_AGAIN}."
    )


def _check_is_bert(path: Path) -> None:
    """Refuses, before its weights are fetched, a model whose configuration is no BERT's."""
    values = read_json_object(path) if is_there(path) else {"model_type": STATIC_TYPE}
    if values.get("model_type") != STATIC_TYPE and not keras_hub.is_preset(values):
        BertConfig.from_hugging_face(values, str(path))


def _missing(folder: Path, whole: bool) -> str | None:
    """The first file of weights that is not there, or any that a whole model has; None if none."""
    with contextlib.suppress(UserError):  # of modules that only vectors are made with
        for kind, place in module_folders(folder)[:1]:
            if kind == STATIC_MODULE:  # it needs no configuration
                files = (Path(place, name) for name in (WEIGHTS_FILE, FAST_TOKENIZER_FILE))
                return next((str(file) for file in files if not is_there(folder / file)), None)
    weights = [WEIGHTS_FILE]
    for name, index in _INDEX_OF.items():
        if (folder / name).is_file():
            weights = [name]
            break
        if index and (folder / index).is_file():
            shards = read_json_object(folder / index).get("weight_map")
            weights = sorted({*map(str, shards.values())}) if isinstance(shards, dict) else [name]
            break
    words = (VOCABULARY_FILE, FAST_TOKENIZER_FILE)
    fast = next((name for name in words[::-1] if is_there(folder / name)), VOCABULARY_FILE)
    others = (CONFIG_FILE, fast) if whole else ()
    return next((file for file in (*weights, *others) if not is_there(folder / file)), None)
