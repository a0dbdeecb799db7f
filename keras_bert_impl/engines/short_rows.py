"""Short rows that come alone: computed by graphs of fixed lengths, which take a third less time.

With open shapes OpenVINO works out every operation's shape again in each call. For a short text
that is as much as the computation. So a row is padded to one of a few lengths that the graph is
compiled for; each is made in the background once some rows have asked for it, because it takes half
a second and a copy of the weights. Until then nobody waits: the graph with open shapes computes.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.engines.engine import Features, Outputs
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS

_log = logging.getLogger(__name__)

_LENGTHS = (8, 16, 24, 32)  # coarser ones compute more padding than they save
_ROWS_BEFORE = 4  # a command that answers one text compiles nothing for it
_MOST_BYTES = 96 << 20  # of weights: larger models compute so long that it would save little


class ShortRows:
    """Computes rows of a graph that come alone, one at a time."""

    def __init__(self, graph: Any, compiled: Callable[[Any], Any]) -> None:
        self._graph, self._compiled = graph, compiled
        self._fits = _takes_rows(graph) and _weights_of(graph) <= _MOST_BYTES
        self._asked: Counter[int] = Counter()
        self._ready: dict[int, _FixedLength] = {}
        self._threads: dict[int, threading.Thread] = {}

    def compute(self, features: Features) -> Outputs | None:
        """The outputs of a batch; None where it is no short row, or its length is not ready."""
        shape = features[ENCODER_INPUTS[0]].shape if self._fits else ()
        if len(shape) != 2 or shape[0] != 1 or shape[1] > _LENGTHS[-1]:
            return None
        length = next(length for length in _LENGTHS if shape[1] <= length)
        if length in self._ready:
            return self._ready[length].compute(features, shape[1])
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
