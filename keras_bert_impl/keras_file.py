"""Opening `.keras` files that hold models, layers or optimizers of this package."""

import importlib
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import keras

from keras_bert_impl.errors import UserError, reason_of, shown

# Importing a module registers its classes with Keras, and imports the layers that they are made of.
_REGISTERING = (
    "models.classifier",
    "models.embedder",
    "models.encoder",
    "models.feature_tagger",
    "models.multiple_choice",
    "models.pretrainer",
    "models.token_models",
    "optimizers.bert_adamw",
    "optimizers.schedules",
    "tokenization.preprocessor",
)

# What Keras and h5py raise at a file that is none of Keras, or damaged.
_BROKEN = (
    OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError, zlib.error,
    zipfile.BadZipFile,
)  # fmt: skip


def load_model(path: str | os.PathLike[str], **options: Any) -> Any:
    """Opens what `model.save("model.keras")` wrote, in a new process too.

    `keras.saving.load_model` knows only classes whose modules are imported already, and
    `import keras_bert_impl` imports none of them.

    Args:
        path: the `.keras` file.
        **options: further arguments of `keras.saving.load_model`, e.g. `compile=False`.

    Returns:
        The model.

    Raises:
        UserError: there is no such file, it is damaged, or it holds a function of Python (a
            `Lambda` layer), which is never run unless `safe_mode=False` is given.
    """
    if not Path(path).is_file():
        raise UserError(
            f"{os.fspath(path)}: no such file; name a .keras file, or open a model directory with "
            "from_pretrained."
        )
    for name in _REGISTERING:
        importlib.import_module(f"keras_bert_impl.{name}")
    if not zipfile.is_zipfile(path):
        raise UserError(f"{os.fspath(path)}: is no .keras file; save the model again.")
    try:
        return keras.saving.load_model(path, **options)
    except _BROKEN as error:
        reason = shown(reason_of(error))[1:-1]
        raise UserError(
            f"{os.fspath(path)}: cannot be opened ({reason}); save the model again."
        ) from error
