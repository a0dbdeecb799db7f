"""Keeps TensorFlow's start-up chatter off the terminal.

While it is imported, TensorFlow writes some ten lines about its build to standard error, past every
setting of its log level. They hide a tool's own lines, so they are caught at the file descriptor
for as long as the import lasts, and shown only if it fails.
"""

import contextlib
import importlib.abc
import importlib.machinery
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from types import ModuleType


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


class _QuietFinder(importlib.abc.MetaPathFinder):
    """Finds the package `tensorflow` as Python does, and loads it quietly."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        # Not `importlib.util.find_spec`, which would ask this finder again.
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_quietly(module: ModuleType) -> None:
                with standard_error_held_back():
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
