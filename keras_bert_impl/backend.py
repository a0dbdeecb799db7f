"""What a job needs of the machine: Keras' backend, a quiet TensorFlow, an extra's packages, cores.

While it is imported, TensorFlow writes some ten lines about its build to standard error, past every
setting of its log level. They are caught at the file descriptor, and shown if the import fails.
"""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from keras_bert_impl.errors import UserError

TENSORFLOW, JAX = "tensorflow", "jax"


def choose_tensorflow() -> None:
    """Lets Keras take TensorFlow when it is imported, whatever its configuration file says."""
    chosen = os.environ.get("KERAS_BACKEND") or TENSORFLOW
    if chosen != TENSORFLOW:
        raise UserError(
            f"KERAS_BACKEND={chosen}: the tools compute with TensorFlow only; set the environment "
            "variable KERAS_BACKEND=tensorflow, or none."
        )
    os.environ["KERAS_BACKEND"] = chosen


def choose_products_for_batches() -> None:
    """Lets TensorFlow, which is not imported yet, take oneDNN's matrix products.

    By itself it takes them only where a processor has AVX-512 for neural networks. On others a
    training step is a quarter slower without them, batches of texts a sixth, and a short text alone
    a tenth faster. A value that the user has given holds.
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def need_tensorflow(what: str, *others: str) -> None:
    """Refuses another backend of Keras where only TensorFlow will do, and perhaps others.

    Layers and models run on JAX as well; our training step, strategies and SavedModels are
    TensorFlow's. On a backend that no test of ours runs on, the numbers may be others.
    """
    try:
        import keras  # here, as below: it loads TensorFlow
    except ModuleNotFoundError as error:
        raise UserError(not_installed(what, error)) from error
    backend = keras.backend.backend()
    if backend not in (TENSORFLOW, *others):
        raise UserError(
            f"{what} needs Keras' TensorFlow backend, but Keras runs on {backend}; set the "
            "environment variable KERAS_BACKEND=tensorflow."
        )


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed; a server's environment is without it."""
    return importlib.util.find_spec(TENSORFLOW) is not None


def not_installed(what: str, error: ModuleNotFoundError) -> str:
    """The sentence about a missing package, which an environment for servers leaves out.

    Example:
        >>> not_installed("training", ModuleNotFoundError(name="keras.layers"))
        'training needs the package keras, which is not installed; install keras_bert_impl with...'
    """
    package = str(error.name).partition(".")[0]
    return (
        f"{what} needs the package {package}, which is not installed; install keras_bert_impl with "
        "all that it depends on (an environment for servers answers by exports for OpenVINO, and "
        "by graphs that are kept beside a model)."
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


_LOAD = Path("/proc/loadavg")


def others_want_cores(own: int = 1) -> bool:
    """Whether half of the machine's cores or more have other work, as far as the system tells.

    That is what is runnable in this moment, on Linux, but for so many threads of one's `own`; it
    takes some microseconds to ask.
    """
    try:
        _, _, _, runnable, _ = _LOAD.read_text().split()  # such as 3/512
        return 2 * (int(runnable.partition("/")[0]) - own) >= (os.cpu_count() or 1)
    except (OSError, ValueError):
        return False


def dense_gradient(gradient: Any) -> Any:
    """A gradient as one tensor of its variable's shape, the rows of a table added up.

    TensorFlow gives the gradient of a table that was looked up as one row for each look-up, the
    same row as often as it was looked up; any other gradient is given back as it is.

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


@contextlib.contextmanager
def standard_error_held_back() -> Iterator[None]:
    """Catches what is written to file descriptor 2; writes it after all if the block fails."""
    sys.stderr.flush()  # the lines that Python holds itself come first
    kept = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        except BaseException:
            caught.seek(0)
            os.write(kept, caught.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


_LEFT_OUT = ("jax", "matplotlib", "sklearn")
"""What TensorFlow and Keras import where it is installed, for uses that no tool makes of them."""


@contextlib.contextmanager
def _imported_lightly() -> Iterator[None]:
    """Inside the block large packages that are not needed seem not to be installed.

    They took two fifths of TensorFlow's import. What is imported is then left to itself by the
    garbage collector: a million objects, which it would look through many times while a model is
    traced.
    """
    hidden = [name for name in _LEFT_OUT if name not in sys.modules]
    collects = gc.isenabled()
    gc.disable()
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
        gc.freeze()
        if collects:
            gc.enable()


class _QuietFinder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow and Keras as Python does, and loads them quietly."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in ("keras", "tensorflow"):  # each imports the other
            return None
        # Not `importlib.util.find_spec`, which would ask this finder again.
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_quietly(module: ModuleType) -> None:
                with standard_error_held_back(), _imported_lightly():
                    load(module)

            spec.loader.exec_module = load_quietly  # type: ignore[method-assign]
        return spec


def is_no_retracing(record: logging.LogRecord) -> bool:
    """Leaves out, as a filter, that a function was compiled for one more length of batches."""
    return "triggered tf.function retracing" not in record.getMessage()


def import_tensorflow_quietly() -> None:
    """From now on the import of TensorFlow, whenever it comes, prints nothing.

    `TF_CPP_MIN_LOG_LEVEL`, where a user has set it to anything but 3, keeps its meaning: nothing is
    changed then. Processes started from here inherit the 3, and are as quiet.
    """
    # 3: errors too, which reach us as exceptions as well
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3" or "tensorflow" in sys.modules:
        return
    sys.meta_path.insert(0, _QuietFinder())
