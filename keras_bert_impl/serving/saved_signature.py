"""One signature of a SavedModel on disk, for tools that ask it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.errors import UserError


def is_saved_model(path: Path) -> bool:
    """Whether a folder holds a SavedModel.

    Example:
        >>> is_saved_model(Path("/no/such/folder"))
        False
    """
    return (path / "saved_model.pb").is_file()


def load_signature(
    folder: Path, name: str, what_has_it: str, *, trusted: bool
) -> Callable[..., dict[str, Any]]:
    """Loads a SavedModel and gives one of its signatures.

    A SavedModel is a program: its graph may read, write and delete files. It is loaded only where
    the caller says that it comes from somebody who is trusted.

    Args:
        folder: the SavedModel.
        name: the signature.
        what_has_it: the models that have the signature, for the message.
        trusted: whether the caller said so (an option `trust_saved_model`).

    Returns:
        A function of tensors by the names of the inputs; it holds the weights.

    Raises:
        UserError: it is not trusted, cannot be loaded, or has no such signature.
    """
    if not trusted:
        raise UserError(
            f"{folder}: is a SavedModel, a program that can do with your files whatever you can; "
            "if you made it or trust who did, give `trust_saved_model=True`, else name a model "
            "directory, which holds numbers and text only."
        )
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations

    try:
        loaded = tf.saved_model.load(str(folder))
    except (OSError, tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"{folder}: cannot be loaded ({str(error).splitlines()[0]}); export it again."
        ) from error
    if name not in loaded.signatures:
        raise UserError(
            f"{folder}: has no signature {name} (it has "
            f"{', '.join(sorted(loaded.signatures))}); export {what_has_it}."
        )

    def ask(**inputs: Any) -> dict[str, Any]:
        # `loaded` stays in the function: a signature alone would let the weights go.
        return loaded.signatures[name](**inputs)

    return ask
