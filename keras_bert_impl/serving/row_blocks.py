"""A model on any number of rows inside a graph, in the memory of a few."""

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

ROWS_AT_ONCE = 32
"""A long text's windows are computed so many at a time."""


def in_blocks(
    function: Callable[..., Mapping[str, tf.Tensor]],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[str],
    rows_at_once: int = ROWS_AT_ONCE,
) -> dict[str, tf.Tensor]:
    """Calls a function of rows with a few rows at a time, and puts its answers together.

    Args:
        function: takes tensors [rows, length]; gives float32 [rows, length] by name.
        inputs: tensors [rows, length]; one row at least.
        outputs: the names of what the function gives.
        rows_at_once: how many rows a call gets at most.

    Returns:
        The outputs for all rows, float32 [rows, length] each.

    Example:
        >>> double = lambda rows: {"doubled": 2.0 * rows}
        >>> found = in_blocks(double, [tf.constant([[1.0], [2.0], [3.0]])], ["doubled"], 2)
        >>> found["doubled"].numpy().tolist()
        [[2.0], [4.0], [6.0]]
    """
    rows = tf.shape(inputs[0])[0]
    blocks = -(-rows // rows_at_once)
    empty = [
        tf.TensorArray(tf.float32, blocks, infer_shape=False, element_shape=[None, None])
        for _ in outputs
    ]

    def compute(block: tf.Tensor, arrays: Sequence[tf.TensorArray]) -> tuple:
        start = block * rows_at_once
        answer = function(*(array[start : start + rows_at_once] for array in inputs))
        found = zip(arrays, outputs, strict=True)
        return block + 1, [array.write(block, answer[name]) for array, name in found]

    _, full = tf.while_loop(
        lambda block, _: block < blocks, compute, (0, empty), parallel_iterations=1
    )
    return {name: array.concat() for name, array in zip(outputs, full, strict=True)}
