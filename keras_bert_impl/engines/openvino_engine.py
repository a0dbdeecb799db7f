"""Computing with OpenVINO: a model as its graph, and a batch on every core at the same time.

OpenVINO itself is opened once, and so that signals stay harmless.
"""

import functools
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from keras_bert_impl.backend import need_tensorflow, usable_cores
from keras_bert_impl.cpu_kernels.inference import traced_forward
from keras_bert_impl.engines.config import BFLOAT16, FLOAT32, INT8, need_openvino
from keras_bert_impl.engines.engine import Features, Key, Outputs
from keras_bert_impl.engines.portable_kernels import OpenVinoKernels

Result = TypeVar("Result")


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

    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin
    return core


def openvino_graph(model: Any) -> Any:
    """A model with its present weights, float32, as an `openvino.Model`.

    It is converted from the graph that is traced here, as Keras' own export does; here it is
    traced in the forms that OpenVINO computes as one operation.

    Args:
        model: one of this project's models, of the dtype policy float32, on TensorFlow.

    Returns:
        A graph whose inputs and outputs have the model's names.

    Raises:
        UserError: Keras runs on another backend than TensorFlow.
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
    """A model outside of training as a traced function, in forms that other engines know.

    Returns:
        A concrete function from the dict of the model's inputs to the dict of its outputs.
    """
    return traced_forward(model, OpenVinoKernels())


def graph_sha256(graph: Any) -> str:
    """Tells graphs apart by their operations and weights.

    Args:
        graph: an `openvino.Model`.

    Returns:
        A SHA-256, hexadecimal.
    """
    parts = []
    for operation in graph.get_ops():
        kind = operation.get_type_name()
        data = operation.get_data().tobytes() if kind == "Constant" else b""
        parts.append(hashlib.sha256(kind.encode() + data).digest())
    # Sorted: in which order a graph lists its operations is no promise of it.
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


_AT_A_TIME = 2  # batches for each core: none waits while the next one is made


class OpenVinoEngine:
    """A graph that OpenVINO computes on the CPU.

    Many batches are computed at the same time, each by one core, which suits batches of about a
    thousand tokens; a batch that comes alone is computed by all cores.

    Args:
        make_graph: gives the `openvino.Model`; called once, at the first use.
        precision: "float32", "bfloat16", or "int8" for a graph that was quantized, whose other
            operations are computed in bfloat16 where the processor has it.
        threads: how many cores; by default all that the process may use.
        deterministic: compute a batch that comes alone by one core, too, as any other.

    Raises:
        UserError: OpenVINO is not installed.
    """

    tokens_at_once = 1024
    few_lengths = False

    def __init__(
        self,
        make_graph: Callable[[], Any],
        precision: str = FLOAT32,
        threads: int | None = None,
        deterministic: bool = False,
    ) -> None:
        need_openvino(precision)
        self._make_graph, self._precision = make_graph, precision
        self._threads = self.batches_at_once = threads or usable_cores()
        self._deterministic = deterministic
        self._graph: Any = None
        self._compiled: dict[int, Any] = {}
        self._request: Any = None
        self._lock = threading.Lock()

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        """See `Engine.compute`; in the order of the batches."""
        source = iter(batches)
        first = list(islice(source, 2))
        if len(first) == 1 and not self._deterministic:
            ((key, features),) = first
            yield key, self._compute_one(features)
        else:
            yield from self._compute_many(chain(first, source))

    def _compute_one(self, features: Features) -> Outputs:
        with self._lock:  # one request, which is kept: making one costs as much as a short text
            if self._request is None:
                self._request = self._for_streams(1).create_infer_request()
            self._request.infer(features)
            return _outputs(self._request)

    def _compute_many(
        self, batches: Iterable[tuple[Key, Features]]
    ) -> Iterator[tuple[Key, Outputs]]:
        # Requests are waited for in turn. OpenVINO's own queue calls back from its threads instead,
        # and stands still for ever where it is let go while such a call ends.
        compiled = self._for_streams(self._threads)
        free = [compiled.create_infer_request() for _ in range(_AT_A_TIME * self._threads)]
        running: deque[tuple[Key, Any]] = deque()
        try:
            for key, features in batches:
                if not free:
                    done, request = running.popleft()
                    request.wait()
                    yield done, _outputs(request)
                    free.append(request)
                running.append((key, free.pop()))
                running[-1][1].start_async(features)
            while running:
                done, request = running.popleft()
                request.wait()
                yield done, _outputs(request)
        finally:
            for _, request in running:
                request.wait()

    def identity(self) -> str | None:
        """Of int8 the graph itself, which depends on the texts that its scales were found on."""
        if self._precision != INT8:
            return None
        from keras_bert_impl.engines.openvino_engine import graph_sha256

        return graph_sha256(self._known_graph())

    def _known_graph(self) -> Any:
        if self._graph is None:
            self._graph = self._make_graph()
        return self._graph

    def _for_streams(self, streams: int) -> Any:
        """The graph, prepared to compute so many batches at the same time."""
        if streams not in self._compiled:
            core = openvino_core()
            settings = {
                "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": self._threads,
                "INFERENCE_PRECISION_HINT": _hint(core, self._precision),
            }
            self._compiled[streams] = core.compile_model(self._known_graph(), "CPU", settings)
        return self._compiled[streams]


def _hint(core: Any, precision: str) -> str:
    has_bfloat16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    half = precision == BFLOAT16 or (precision == INT8 and has_bfloat16)
    return "bf16" if half else "f32"


def _outputs(request: Any) -> Outputs:
    """Copies: the request's own memory is that of its next batch."""
    return {
        next(iter(port.names)): np.array(request.get_tensor(port).data)
        for port in request.model_outputs
    }
