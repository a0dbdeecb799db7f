"""Says in one sentence what is wrong with a data set of TensorFlow Datasets."""

from collections.abc import Iterator
from contextlib import contextmanager

from keras_bert_impl.errors import UserError


@contextmanager
def opening_data_set(name: str, options: str) -> Iterator[None]:
    """Says what is wrong where a data set cannot be opened inside the block."""
    import tensorflow_datasets as tfds

    try:
        yield
    except (
        ValueError,
        KeyError,
        AssertionError,
        OSError,
        tfds.core.registered.DatasetNotFoundError,
    ) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "?"
        raise UserError(f"{name}: cannot be read ({reason}); check {options}.") from error
