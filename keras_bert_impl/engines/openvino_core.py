"""OpenVINO itself, opened once, and so that signals stay harmless."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")

# How many primitives oneDNN keeps besides those of OpenVINO's own cache, for the whole process. It
# reads this where it makes the first one. With its own 1,024, code for shapes that may never come
# again takes a hundred megabytes; 64 are as fast.
_PRIMITIVES_KEPT = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


@functools.cache
def openvino_core() -> Any:
    """The `openvino.Core` of this process, with the plugin for processors loaded."""
    return beside_the_main_thread(_load)


def beside_the_main_thread(work: Callable[[], Result]) -> Result:
    """Does work that loads OpenVINO's plugin for processors, in a thread that ends with it.

    The plugin gives the thread that loads it a stack for signal handlers of its own, and unmaps
    that memory when it is let go, in whatever thread that is. Loaded by the main thread and let go
    by another (wherever the garbage collector runs), it leaves the main thread a stack that is not
    there, and the next SIGTERM, whose handler Python runs on that stack, is a segmentation fault.
    A thread that ends takes its stack for signals with it.

    Args:
        work: whatever opens an `openvino.Core`; other libraries open their own.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def _load() -> Any:
    import openvino

    os.environ.setdefault(*_PRIMITIVES_KEPT)
    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin
    return core
