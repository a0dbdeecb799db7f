"""Computing with OpenVINO: a graph, and a batch on every core at the same time."""

import contextlib
import logging
import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from keras_bert_impl.backend import others_want_cores, usable_cores
from keras_bert_impl.engines.config import BFLOAT16, FLOAT32, INT8, need_openvino
from keras_bert_impl.engines.engine import Features, Key, Outputs
from keras_bert_impl.engines.openvino_graph import graph_sha256, openvino_core
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS

_log = logging.getLogger(__name__)

_AT_A_TIME = 2  # batches for each core: none waits while the next one is made
# The shapes of batches whose code is kept, of each stream: some 70 kB each, whatever the model.
# OpenVINO's own 5,000 let the memory grow for hours; making the code again takes 2 ms.
_SHAPES_KEPT = 256
_LENGTHS = (8, 16, 24, 32)  # coarser ones compute more padding than they save
_AWAKE_SECONDS = 0.01  # threads that computed look out for more work so long, without sleeping
_ROWS_BEFORE = 4  # a command that answers one text compiles nothing for it
_MOST_BYTES = 96 << 20  # of weights: larger models compute so long that it would save little


class OpenVinoEngine:
    """A graph that OpenVINO computes on the CPU.

    Many batches are computed at the same time, each by one core, which suits batches of about a
    thousand tokens; a batch that comes alone is computed by all cores. The graph is made at the
    first use.
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
        need_openvino()
        self._make_graph, self._precision = make_graph, precision
        self._threads = self.batches_at_once = threads or usable_cores()
        self._deterministic = deterministic
        self._graph: Any = None
        self._short_rows: ShortRows | None = None
        # Both by streams and threads.
        self._compiled: dict[tuple[int, int], Any] = {}
        self._free: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)  # requests
        self._callers, self._is_closed, self._all_computed = 0, False, -math.inf
        self._lock, self._changed = threading.RLock(), threading.Condition()

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the graph's inputs, sorted."""
        return tuple(sorted(port.any_name for port in self._known_graph().inputs))

    @property
    def output_sizes(self) -> dict[str, int | None]:
        """The graph's outputs by name, each with its last dimension; None where that is free."""
        ends = {port.any_name: port.partial_shape[-1] for port in self._known_graph().outputs}
        return {
            name: ends[name].get_length() if ends[name].is_static else None for name in sorted(ends)
        }

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        """See `Engine.compute`; in the order of the batches."""
        source = iter(batches)
        first = list(islice(source, 2))
        if len(first) == 1:
            ((key, features),) = first
            yield key, self.compute_one(features)
        else:
            yield from self._compute_many(chain(first, source))

    def compute_one(self, features: Features) -> Outputs:
        """See `Engine.compute_one`; a batch alone is computed by all cores, several by one each.

        A short text of a small model is computed by one core, too, while others want the cores: a
        thread that waits for its core keeps all of them waiting, which takes twice as long.
        """
        with self._caller() as is_alone:
            streams = threads = self._threads
            if is_alone and not self._deterministic:
                streams, short_rows = 1, self._known_short_rows()
                length = short_rows.length_of(features)
                awake = time.monotonic() - self._all_computed < _AWAKE_SECONDS
                own = self._threads if awake else 1
                if length and self._threads > 1 and others_want_cores(own):
                    threads = 1
                elif length and (outputs := short_rows.compute(features, length)) is not None:
                    self._all_computed = time.monotonic()
                    return outputs
            with self._request(streams, threads) as request:
                request.infer(features)
                if threads > 1:
                    self._all_computed = time.monotonic()
                return _outputs(request)

    def close(self) -> None:
        """See `Engine.close`."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: self._callers == 0)
        if self._short_rows is not None:
            self._short_rows.wait()
        with self._lock:
            self._free.clear()
            self._compiled.clear()
            self._graph = self._short_rows = None

    @contextlib.contextmanager
    def _caller(self) -> Iterator[bool]:
        """Inside the block the engine stays open; tells whether no other thread computes."""
        with self._changed:
            if self._is_closed:
                raise RuntimeError("this engine is closed")
            self._callers += 1
            is_alone = self._callers == 1
        try:
            yield is_alone
        finally:
            with self._changed:
                self._callers -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def _request(self, streams: int, threads: int) -> Iterator[Any]:
        """A request of this thread's own; they are kept: making one costs as much as a text."""
        compiled, free = self._ready(streams, threads), self._free[streams, threads]
        try:
            request = free.pop()
        except IndexError:
            request = compiled.create_infer_request()
        yield request
        free.append(request)

    def _compute_many(
        self, batches: Iterable[tuple[Key, Features]]
    ) -> Iterator[tuple[Key, Outputs]]:
        # Requests are waited for in turn. OpenVINO's own queue calls back from its threads instead,
        # and stands still for ever where it is let go while such a call ends.
        running: deque[tuple[Key, Any]] = deque()
        with self._caller(), contextlib.ExitStack() as stack:
            each = partial(self._request, self._threads, self._threads)
            requests = (each() for _ in range(_AT_A_TIME * self._threads))
            free = [stack.enter_context(request) for request in requests]
            stack.callback(_wait, running)
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

    def identity(self) -> str | None:
        """Of int8 the graph itself, which depends on the texts that its scales were found on."""
        if self._precision != INT8:
            return None
        return graph_sha256(self._known_graph())

    def _known_graph(self) -> Any:
        with self._lock:
            if self._graph is None:
                self._graph = self._make_graph()
            return self._graph

    def _known_short_rows(self) -> "ShortRows":
        with self._lock:
            if self._short_rows is None:
                self._short_rows = ShortRows(self._known_graph(), self._compile)
            return self._short_rows

    def _ready(self, streams: int, threads: int) -> Any:
        """The graph, prepared to compute so many batches at the same time by so many threads."""
        with self._lock:
            if (streams, threads) not in self._compiled:
                compiled = self._compile(self._known_graph(), streams, threads)
                self._compiled[streams, threads] = compiled
            return self._compiled[streams, threads]

    def _compile(self, graph: Any, streams: int = 1, threads: int | None = None) -> Any:
        core = openvino_core()
        settings = {
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": threads or self._threads,
            "INFERENCE_PRECISION_HINT": _hint(core, self._precision),
            "CPU_RUNTIME_CACHE_CAPACITY": _SHAPES_KEPT,
        }
        return core.compile_model(graph, "CPU", settings)


def _wait(running: Iterable[tuple[Any, Any]]) -> None:
    for _, request in running:
        request.wait()


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


class ShortRows:
    """Computes rows that come alone by graphs of fixed lengths, which take a third less time.

    With open shapes OpenVINO works out every operation's shape again in each call, which for a
    short text is as much as the computation. A graph of a length is made in the background once
    some rows have asked for it, because it takes half a second and a copy of the weights; until
    then the graph with open shapes computes.
    """

    def __init__(self, graph: Any, compiled: Callable[[Any], Any]) -> None:
        self._graph, self._compiled = graph, compiled
        self._fits = _takes_rows(graph) and _weights_of(graph) <= _MOST_BYTES
        self._asked: Counter[int] = Counter()
        self._ready: dict[int, _FixedLength] = {}
        self._threads: dict[int, threading.Thread] = {}

    def length_of(self, features: Features) -> int | None:
        """The length at which a batch is computed; None where it is no short row."""
        shape = features[ENCODER_INPUTS[0]].shape if self._fits else ()
        if len(shape) != 2 or shape[0] != 1:
            return None
        return next((length for length in _LENGTHS if shape[1] <= length), None)

    def compute(self, features: Features, length: int) -> Outputs | None:
        """The outputs of a short row; None where its length is not ready."""
        if length in self._ready:
            return self._ready[length].compute(features, features[ENCODER_INPUTS[0]].shape[1])
        self._asked[length] += 1
        if self._asked[length] >= _ROWS_BEFORE and length not in self._threads:
            self._threads[length] = threading.Thread(target=self._make, args=(length,))
            self._threads[length].start()
        return None

    def wait(self) -> None:
        """Waits for what is compiled in the background."""
        for thread in self._threads.values():
            thread.join()

    def _make(self, length: int) -> None:
        try:
            graph = _reshaped(self._graph, length)
            request = self._compiled(graph).create_infer_request()
            self._ready[length] = _FixedLength(request, _kept_parts(self._graph, length))
        except RuntimeError as error:  # fewer positions, or no memory: open shapes do it all
            _log.debug("no graph of the fixed length %d: %s", length, error)


class _FixedLength:
    """A request whose inputs have one size, filled in place."""

    def __init__(self, request: Any, parts: Mapping[str, Sequence[bool]]) -> None:
        self._request, self._parts = request, parts
        self._inputs = {name: request.get_tensor(name).data for name in ENCODER_INPUTS}
        self._outputs = {port.any_name: port for port in request.model_outputs}

    def compute(self, features: Features, count: int) -> Outputs:
        """The outputs of a row of `count` tokens, without those of padding."""
        for name, array in self._inputs.items():
            array[:, :count] = features[name]
            array[:, count:] = 0
        self._request.infer()
        tokens, all_of_it = slice(count), slice(None)
        return {
            name: np.array(
                self._request.get_tensor(port).data[
                    tuple(tokens if of_tokens else all_of_it for of_tokens in self._parts[name])
                ]
            )
            for name, port in self._outputs.items()
        }


def _reshaped(graph: Any, length: int) -> Any:
    fixed = graph.clone()  # of the same weights in memory
    fixed.reshape({name: [1, length] for name in ENCODER_INPUTS})
    return fixed


def _kept_parts(graph: Any, length: int) -> dict[str, list[bool]]:
    """Of each output by name, for each of its dimensions whether it counts tokens."""
    sizes = [_reshaped(graph, size).outputs for size in (length, length - 1)]
    return {
        one.any_name: [a != b for a, b in zip(one.shape, other.shape, strict=True)]
        for one, other in zip(*sizes, strict=True)
    }


def _takes_rows(graph: Any) -> bool:
    """Whether a graph reads texts and nothing else: no choices, no positions of masks."""
    shapes = {port.any_name: port.partial_shape for port in graph.inputs}
    return set(shapes) == set(ENCODER_INPUTS) and all(len(shape) == 2 for shape in shapes.values())


def _weights_of(graph: Any) -> int:
    constants = (one for one in graph.get_ops() if one.get_type_name() == "Constant")
    return sum(one.get_byte_size() for one in constants)
