"""Small compiled islands in a graph that is otherwise not compiled.

On a CPU the large matrix products are fastest in oneDNN, but the many elementwise passes between
them are bound by memory: compiled by XLA into one pass each, they cost a third. An island is such
a passage. Its gradient is an island too, which computes the forward pass again from the island's
inputs: these are in memory anyway, and nothing else is kept for the backward pass.

XLA computes reductions on one core only. So a large island is cut along its first axis into as many
parts as there are cores, and TensorFlow runs the parts side by side (see `xla_programs`).
"""

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from keras_bert_impl.fast_path.xla_programs import compiled

_LARGE = 2**18  # numbers; a smaller island is not worth cutting
_MOST_PARTS = 8


def island(
    function: Callable[..., Any],
    cut_inputs: Sequence[bool] = (),
    cut_constants: Sequence[bool] = (),
) -> Callable[..., Any]:
    """Compiles a function of tensors and its gradient.

    Args:
        function: takes `inputs`, a tuple of floating-point tensors that gradients flow to, and
            `constants`, a tuple of tensors (or None) without gradients, to which the number of the
            first row is appended; gives one tensor, or several if the island is not cut.
        cut_inputs: which inputs are cut along their first axis, as the result is; none by default.
        cut_constants: which constants are cut, unless their first axis has a single row.

    Returns:
        A function with the same arguments and results.

    Example:
        >>> square = island(lambda inputs, constants: inputs[0] ** 2)
        >>> number = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(number)
        ...     result = square((number,), ())
        >>> float(result), float(tape.gradient(result, number))
        (9.0, 6.0)
    """
    forward = compiled(function)

    @compiled
    def backward(inputs: Any, constants: Any, upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(inputs, constants)
        return tape.gradient(outputs, inputs, upstream)

    def compute(inputs: tuple[Any, ...], constants: tuple[Any, ...]) -> Any:
        # Read variables here: inside, TensorFlow would take them for hidden inputs.
        inputs = tuple(tf.convert_to_tensor(part) for part in inputs)
        bounds = _bounds(inputs[0]) if any(cut_inputs) else [0, None]

        def parts(tensors: Sequence[Any], constants: Sequence[Any]) -> list[tuple[Any, Any]]:
            if len(bounds) == 2:
                return [(tuple(tensors), (*constants, tf.constant(0)))]
            return [
                (
                    _rows(tensors, cut_inputs, start, end),
                    (*_rows(constants, cut_constants, start, end), tf.constant(start)),
                )
                for start, end in itertools.pairwise(bounds)
            ]

        @tf.custom_gradient
        def passage(*tensors: Any) -> tuple[Any, Callable[..., Any]]:
            def gradient(*upstream: Any) -> Any:
                if len(bounds) == 2:
                    several = upstream if len(upstream) > 1 else upstream[0]
                    return backward(*parts(tensors, constants)[0], several)
                slices = [upstream[0][start:end] for start, end in itertools.pairwise(bounds)]
                pieces = [
                    backward(*part, piece)
                    for part, piece in zip(parts(tensors, constants), slices, strict=True)
                ]
                return [
                    tf.concat(group, axis=0) if cut else tf.add_n(group)
                    for group, cut in zip(zip(*pieces, strict=True), cut_inputs, strict=True)
                ]

            results = [forward(*part) for part in parts(tensors, constants)]
            return results[0] if len(results) == 1 else tf.concat(results, axis=0), gradient

        return passage(*inputs)

    return compute


def _bounds(tensor: Any) -> list[Any]:
    """Where a tensor is cut along its first axis: [0, rows] where it is not."""
    rows, size = tensor.shape[0], tensor.shape.num_elements()
    count = min(_cores(), _MOST_PARTS)
    if size is None or size < _LARGE or rows < count:
        return [0, None]
    return [rows * part // count for part in range(count + 1)]


def _cores() -> int:
    """Cores that one device may use; replicas on one CPU share them."""
    usable = getattr(os, "sched_getaffinity", None)  # not on every system
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    return max(1, cores // len(tf.config.list_logical_devices("CPU")))


def _rows(tensors: Sequence[Any], cut: Sequence[bool], start: int, end: int) -> tuple[Any, ...]:
    return tuple(
        tensor[start:end] if is_cut and tensor.shape[0] != 1 else tensor
        for tensor, is_cut in zip(tensors, cut, strict=True)
    )
