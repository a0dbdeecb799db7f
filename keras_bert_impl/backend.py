"""Which of Keras' backends runs."""

import keras

from keras_bert_impl.errors import UserError


def need_tensorflow(what: str) -> None:
    """Refuses another backend of Keras where only TensorFlow will do.

    Layers and models run on any backend; our training step, strategies and SavedModels are
    TensorFlow's.

    Args:
        what: what needs it, as a sentence begins.

    Raises:
        UserError: Keras runs on another backend.

    Example:
        >>> need_tensorflow("our training step")
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise UserError(
            f"{what} needs Keras' TensorFlow backend, but Keras runs on {backend}; set the "
            "environment variable KERAS_BACKEND=tensorflow."
        )
