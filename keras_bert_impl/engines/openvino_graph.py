"""OpenVINO itself, opened so that signals stay harmless, and a model as a graph of its own."""

import contextlib
import functools
import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from keras_bert_impl.backend import need_extra, need_tensorflow
from keras_bert_impl.engines.engine import Features
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_file

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
    A thread that ends takes its stack for signals with it. Other libraries open a `Core`, too.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def _load() -> Any:
    import openvino

    os.environ.setdefault(*_PRIMITIVES_KEPT)
    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin
    return core


def openvino_graph(model: Any) -> Any:
    """A model with its present weights, float32, as an `openvino.Model`.

    It is converted from the graph that is traced here, as Keras' own export does, in the forms that
    OpenVINO computes as one operation. Inputs and outputs keep their names.
    """
    import openvino

    need_tensorflow("OpenVINO's graph")
    # The graph's own copy of the weights, which no variable changes or takes with it.
    graph = openvino.convert_model(portable_function(model), share_weights=False)
    for port in graph.inputs:
        name = next(iter(port.names)).partition(":")[0]
        port.get_tensor().set_names({name})
        port.get_node().set_friendly_name(name)
    for port in graph.outputs:  # a tensor may have further names, of where it was computed
        port.get_tensor().set_names(port.get_names() & set(model.output))
    return graph


def portable_function(model: Any) -> Any:
    """A model outside of training as a concrete function of dicts, in forms that others know."""
    from keras_bert_impl.cpu_kernels.inference import traced_forward
    from keras_bert_impl.engines.portable_kernels import OpenVinoKernels

    return traced_forward(model, OpenVinoKernels())


def read_graph_file(path: Path) -> Any:
    """Reads a graph that was exported; its weights lie beside it, in a file that ends in `.bin`."""
    check_file(path)
    check_file(path.with_suffix(".bin"))
    try:
        return openvino_core().read_model(path)
    except RuntimeError as error:
        raise UserError(f"{path}: is no graph that OpenVINO can open; export it again.") from error


def graph_sha256(graph: Any) -> str:
    """The SHA-256 of a graph's operations and weights, hexadecimal."""
    parts = []
    for operation in graph.get_ops():
        kind = operation.get_type_name()
        data = operation.get_data().tobytes() if kind == "Constant" else b""
        parts.append(hashlib.sha256(kind.encode() + data).digest())
    # Sorted: in which order a graph lists its operations is no promise of it.
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


_log = logging.getLogger(__name__)

CALIBRATION_ROWS = 300


def quantize(graph: Any, calibration: Callable[[], Sequence[Features]]) -> Any:
    """The graph, which is changed, with its matrix products in 8-bit integers.

    The ranges of numbers are those of the calibration texts (NNCF's post-training quantization for
    transformers).
    """
    need_extra("openvino", ["nncf"], "`precision=int8`")
    import nncf

    rows = calibration()
    if not rows:
        raise UserError("`precision=int8` needs texts to find its scales on; give some of yours.")
    _log.info("int8: finding the scales on %d texts.", len(rows))
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # its bars are no output of ours
        return beside_the_main_thread(
            lambda: nncf.quantize(
                graph,
                nncf.Dataset(list(rows)),
                model_type=nncf.ModelType.TRANSFORMER,
                subset_size=len(rows),
                ignored_scope=nncf.IgnoredScope(names=head_products(graph)),
            )
        )


def head_products(graph: Any) -> list[str]:
    """The names of the matrix products that stay as they are: those of one token of a text.

    They stand behind the encoder, where no time is won, and what 8 bits cut off is an error of the
    answer itself. (With its pooler and its regressor in 8 bits a model lost 1.8 points of Pearson's
    correlation on STS-B, with its encoder none.) Small heads are no products; see
    `OpenVinoKernels`.
    """
    names = []
    for operation in graph.get_ops():
        # The segments' embeddings are a product, too, of what is chosen by number.
        if operation.get_type_name() == "MatMul" and (
            _kind(operation.input_value(1)) == "Constant"
            and _kind(operation.input_value(0)) != "OneHot"
        ):
            shape = operation.input_value(0).get_partial_shape()
            if shape.rank.is_static and len(shape) == 2:  # not [batch, length, width]
                names.append(operation.get_friendly_name())
    return names


def _kind(output: Any) -> str:
    return str(output.get_node().get_type_name())


def evenly_spread(items: Iterable[Any], count: int) -> list[Any]:
    """At most `count` of any number of items, spread over all of them; read once, in little memory.

    Example:
        >>> evenly_spread(range(10), 4)
        [0, 4, 8]
    """
    kept: list[Any] = []
    step = 1
    for number, item in enumerate(items):
        if number % step == 0:
            kept.append(item)
        if len(kept) > count:
            kept, step = kept[::2], 2 * step
    return kept
