"""What a job needs of the machine: Keras' backend, the packages of an extra, cores."""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable
from typing import Any

from keras_bert_impl.errors import UserError

TENSORFLOW = "tensorflow"


def choose_tensorflow() -> None:
    """Lets Keras take TensorFlow when it is imported, whatever its configuration file says."""
    chosen = os.environ.get("KERAS_BACKEND") or TENSORFLOW
    if chosen != TENSORFLOW:
        raise UserError(
            f"KERAS_BACKEND={chosen}: the tools compute with TensorFlow only; set the environment "
            "variable KERAS_BACKEND=tensorflow, or none."
        )
    os.environ["KERAS_BACKEND"] = chosen


def need_tensorflow(what: str, *others: str) -> None:
    """Refuses another backend of Keras where only TensorFlow will do, and perhaps others.

    Layers and models run on JAX as well; our training step, strategies and SavedModels are
    TensorFlow's. On a backend that no test of ours runs on, the numbers may be others.
    """
    import keras  # here, as below: it loads TensorFlow

    backend = keras.backend.backend()
    if backend not in (TENSORFLOW, *others):
        raise UserError(
            f"{what} needs Keras' TensorFlow backend, but Keras runs on {backend}; set the "
            "environment variable KERAS_BACKEND=tensorflow."
        )


def need_extra(extra: str, packages: Iterable[str], what: str) -> None:
    """Refuses to begin where a package of one of our extras is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"{what} needs the package {package}, which is not installed; "
                f"pip install {_requirements_of(extra)}."
            )


def _requirements_of(extra: str) -> str:
    """What pip can install: not our own name, which is on no index, but what the extra asks for."""
    lines = list[str]()
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a checkout by itself
        lines = importlib.metadata.requires("keras_bert_impl") or []
    ours = (line.split(";")[0] for line in lines if re.search(rf"\bextra == .{extra}\b", line))
    return " ".join(f"'{one.strip()}'" for one in ours) or f"'.[{extra}]' in the project's folder"


def usable_cores() -> int:
    """How many of the machine's cores this process may use."""
    usable = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(usable(0)) if usable else os.cpu_count() or 1


def dense_gradient(gradient: Any) -> Any:
    """A gradient as one tensor of its variable's shape, the rows of a table added up.

    TensorFlow gives the gradient of a table that was looked up as one row for each look-up, the
    same row as often as it was looked up; any other gradient is given back as it is.

    Args:
        gradient: [rows, ...], or TensorFlow's `IndexedSlices` of it.

    Example:
        >>> import tensorflow as tf
        >>> slices = tf.IndexedSlices(tf.ones([3, 1]), tf.constant([1, 1, 0]), [2, 1])
        >>> dense_gradient(slices).numpy().tolist()
        [[1.0], [2.0]]
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    shape = tf.get_static_value(gradient.dense_shape)
    rows = gradient.dense_shape[0] if shape is None else shape[0]
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, rows)
