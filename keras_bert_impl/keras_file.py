"""Opening `.keras` files that hold models, layers or optimizers of this package."""

import importlib
import os
from pathlib import Path
from typing import Any

import keras

from keras_bert_impl import _HOMES, _MODULES
from keras_bert_impl.backend import has_tensorflow
from keras_bert_impl.errors import UserError, reading

# Importing a module registers its classes with Keras, and imports the layers that they are made of.
_REMEDY = "save the model again, or give safe_mode=False where it holds a function that you trust"
_REGISTERING = ("losses", "models.", "optimizers.", "tokenization.preprocessor")


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
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        raise UserError(
            f"{path}: no such file; name a .keras file, or open a model directory with "
            "from_pretrained."
        )
    for home in sorted({*_HOMES.values(), *_MODULES}):
        if home.startswith(_REGISTERING) and (has_tensorflow() or not home.startswith("token")):
            importlib.import_module(f"keras_bert_impl.{home}")
    with reading(path, "a .keras file", _REMEDY):
        return keras.saving.load_model(path, **options)
