"""Small compiled islands in a graph that is otherwise not compiled.

On a CPU the large matrix products are fastest in oneDNN, but the many elementwise passes between
them are bound by memory: compiled by XLA into one pass each, they cost a third. An island is such
a passage. Its gradient is an island too, which computes the forward pass again from the island's
inputs: these are in memory anyway, and nothing else is kept for the backward pass.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def island(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function of tensors and its gradient.

    Args:
        function: takes `inputs`, a tuple of floating-point tensors that gradients flow to, and
            `constants`, a tuple of tensors (or None) without gradients; gives one tensor or
            several.

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
    forward = tf.function(function, jit_compile=True)

    @tf.function(jit_compile=True)
    def backward(inputs: Any, constants: Any, upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(inputs, constants)
        return tape.gradient(outputs, inputs, upstream)

    def compute(inputs: tuple[Any, ...], constants: tuple[Any, ...]) -> Any:
        @tf.custom_gradient
        def passage(*tensors: Any) -> tuple[Any, Callable[..., Any]]:
            def gradient(*upstream: Any) -> Any:
                several = upstream if len(upstream) > 1 else upstream[0]
                return backward(tensors, constants, several)

            return forward(tensors, constants), gradient

        # Read variables here: inside, TensorFlow would take them for hidden inputs.
        return passage(*[tf.convert_to_tensor(part) for part in inputs])

    return compute
