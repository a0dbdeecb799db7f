"""The matrix products of a step and nothing else: the least that a step can take."""

from collections.abc import Callable
from typing import Any

from tools.benchmarks.settings import Settings


def products(settings: Settings, training: bool) -> Callable[[], Any]:
    """Computes the products of one step, block by block, on TensorFlow (oneDNN on CPUs)."""
    import tensorflow as tf

    dtype = tf.bfloat16 if settings.precision == "bfloat16" else tf.float32
    sizes, rows = settings.sizes(), settings.batch_size * settings.length
    h, wide, heads = sizes["hidden"], sizes["intermediate"], sizes["heads"]
    shapes = [(rows, h, 3 * h), (rows, h, h), (rows, h, wide), (rows, wide, h)]
    attention = (settings.batch_size * heads, settings.length, h // heads)
    head = (settings.batch_size * settings.predictions, h, settings.vocab_size)

    def dense(shape: tuple[int, int, int]) -> list[Any]:
        rows_in, width, out = shape
        return [
            tf.random.normal(part, dtype=dtype)
            for part in ((rows_in, width), (width, out), (rows_in, out))
        ]

    operands = [dense(shape) for shape in shapes]
    batched = tf.random.normal(attention, dtype=dtype)
    last = dense(head)

    def multiply(parts: list[Any]) -> list[Any]:
        inputs, kernel, upstream = parts
        forward = [tf.matmul(inputs, kernel)]
        if not training:
            return forward
        back = tf.matmul(upstream, kernel, transpose_b=True)
        return [*forward, back, tf.matmul(inputs, upstream, transpose_a=True)]

    @tf.function
    def compute() -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(sizes["blocks"]):
            results = [result for parts in operands for result in multiply(parts)]
            for _ in range(3 if training else 1):
                scores = tf.matmul(batched, batched, transpose_b=True)
                results += [scores, tf.matmul(scores, batched)]
            total += tf.add_n([_corner(result) for result in results])
        if training:
            for result in multiply(last):
                total += _corner(result)
        return total

    return lambda: float(compute())


def _corner(result: Any) -> Any:
    """One number of a product: asking for it keeps the product from being left out."""
    import tensorflow as tf

    return tf.cast(tf.reshape(result, [-1])[0], tf.float32)
