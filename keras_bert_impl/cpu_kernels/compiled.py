"""Compiled kernels: passages of a graph that XLA compiles, in a graph that it does not compile.

On a CPU the large matrix products are fastest in oneDNN, but the many elementwise passes between
them are bound by memory: compiled by XLA into one pass each, they cost a third. A compiled kernel
is such a passage. Its gradient is compiled too, and computes the forward pass again from the
kernel's inputs: these are in memory anyway, and nothing else is kept for the backward pass.

XLA computes reductions on one core only. So a large kernel is split along its first axis into as
many parts as there are cores, and TensorFlow runs the parts side by side (see `xla_programs`).
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from keras_bert_impl.backend import usable_cores
from keras_bert_impl.compat import gradients_of_this_graph
from keras_bert_impl.cpu_kernels.xla_programs import compiled

_LARGE = 2**18  # numbers; a smaller kernel is not worth splitting
_MOST_PARTS = 8


def compiled_kernel(
    function: Callable[..., Any],
    split_inputs: Sequence[bool] = (),
    split_constants: Sequence[bool] = (),
) -> Callable[..., Any]:
    """Compiles a function of tensors and its gradient.

    Args:
        function: takes `inputs`, a tuple of floating-point tensors that gradients flow to, and
            `constants`, a tuple of tensors (or None) without gradients, to which the number of the
            first row is appended; gives one tensor, or several if the kernel is not split.
        split_inputs: which inputs are split along their first axis, as the result is; none by
            default.

    Returns:
        A function with the same arguments and results.

    Example:
        >>> square = compiled_kernel(lambda inputs, constants: inputs[0] ** 2)
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
        bounds = _bounds(inputs[0]) if any(split_inputs) else [0, None]

        def parts(tensors: Sequence[Any], constants: Sequence[Any]) -> list[tuple[Any, Any]]:
            if len(bounds) == 2:
                return [(tuple(tensors), (*constants, tf.constant(0)))]
            # The first row is a tensor, so that parts of one shape share a program.
            return [
                (
                    _rows(tensors, split_inputs, start, end),
                    (*_rows(constants, split_constants, start, end), tf.constant(start)),
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
                both = zip(parts(tensors, constants), slices, strict=True)
                gradients = [backward(*part, slice_) for part, slice_ in both]
                return [
                    tf.concat(group, axis=0) if is_split else tf.add_n(group)
                    for group, is_split in zip(
                        zip(*gradients, strict=True), split_inputs, strict=True
                    )
                ]

            results = [forward(*part) for part in parts(tensors, constants)]
            return results[0] if len(results) == 1 else tf.concat(results, axis=0), gradient

        with gradients_of_this_graph():
            return passage(*inputs)

    return compute


def rows_of(tensor: Any) -> Any:
    """[..., width] -> [rows, width]: oneDNN multiplies matrices best."""
    return tf.reshape(tensor, [-1, tensor.shape[-1]])


def like(rows: Any, tensor: Any) -> Any:
    """[rows, width] -> [..., width] with the outer axes of `tensor`."""
    outer = tf.shape(tensor)[:-1]
    shaped = tf.reshape(rows, tf.concat([outer, [rows.shape[-1]]], axis=0))
    # A size that is computed in the graph is unknown to what is traced after it.
    shaped.set_shape([*tensor.shape[:-1], rows.shape[-1]])
    return shaped


def normalized(numbers: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """LayerNorm of float32 [rows, width], for use inside compiled code.

    The means are products with a column, which XLA vectorizes; its sums along a row it does not.

    Example:
        >>> row = tf.constant([[1.0, 3.0]])
        >>> normalized(row, tf.ones([2]), tf.zeros([2]), 1e-12).numpy().tolist()
        [[-1.0, 1.0]]
    """
    width = numbers.shape[-1]
    average = tf.fill([width, 1], 1.0 / width)
    centered = numbers - tf.matmul(numbers, average)
    variance = tf.matmul(tf.square(centered), average)
    return centered * tf.math.rsqrt(variance + epsilon) * gamma + beta


def _bounds(tensor: Any) -> list[Any]:
    """Where a tensor is split along its first axis: [0, None] where it is not."""
    rows, size = tensor.shape[0], tensor.shape.num_elements()
    count = min(_cores(), _MOST_PARTS)
    # Slices need bounds when the graph is made: a tensor whose first size is open stays whole. One
    # of which another size is open may become large.
    if rows is None or rows < count or (size is not None and size < _LARGE):
        return [0, None]
    return [rows * part // count for part in range(count + 1)]


def _cores() -> int:
    """Cores that one device may use; replicas on one CPU share them."""
    return max(1, usable_cores() // len(tf.config.list_logical_devices("CPU")))


def _rows(tensors: Sequence[Any], split: Sequence[bool], start: int, end: int) -> tuple[Any, ...]:
    both = zip(tensors, split, strict=True)
    return tuple(x[start:end] if is_split and x.shape[0] != 1 else x for x, is_split in both)
