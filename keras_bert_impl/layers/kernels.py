"""The few computations that cost the time of a BERT step, in one place that can be exchanged.

The layers call `current()`. By default that is `PlainKernels`, plain `keras.ops` that run on every
backend. A faster set with the same results (`keras_bert_impl.fast_path`) can be put in its place
with `use`.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from keras import ops

from keras_bert_impl.layers.activations import activate
from keras_bert_impl.layers.dropout import drop


class PlainKernels:
    """Each computation as plain `keras.ops`: the definition that faster sets are held to.

    Dropout comes as `keys` (uint32 [2], None for no dropout) and `threshold` (of 65,536).
    """

    name = "plain"

    def dense(self, inputs: Any, kernel: Any, bias: Any) -> Any:
        """`inputs @ kernel + bias`; [..., in] x [in, out] -> [..., out]."""
        return ops.add(ops.matmul(inputs, kernel), bias)

    def dense_activated(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        """A dense layer and its activation; [..., in] x [in, out] -> [..., out]."""
        return activate(self.dense(inputs, kernel, bias), activation)

    def decode(self, hidden: Any, table: Any) -> Any:
        """Scores every piece in float32: [..., hidden] x [pieces, hidden] -> [..., pieces]."""
        return ops.cast(ops.matmul(hidden, ops.transpose(table)), "float32")

    def layer_norm(self, inputs: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
        """Layer normalization of the last axis, computed in float32, given as `dtype`."""
        numbers = ops.cast(inputs, "float32")
        centered = ops.subtract(numbers, ops.mean(numbers, axis=-1, keepdims=True))
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        scaled = ops.multiply(centered, ops.rsqrt(ops.add(variance, epsilon)))
        gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
        return ops.cast(ops.add(ops.multiply(scaled, gamma), beta), dtype)

    def add_norm(
        self,
        inputs: Any,
        residual: Any,
        norm: tuple[Any, Any, float],
        keys: Any | None,
        threshold: int,
    ) -> Any:
        """`LayerNorm(dropout(inputs) + residual)` with `norm` = (gamma, beta, epsilon)."""
        if keys is not None:
            inputs = drop(inputs, keys, threshold)
        total = ops.add(ops.cast(inputs, "float32"), ops.cast(residual, "float32"))
        return self.layer_norm(total, *norm, dtype=residual.dtype)

    def attend(
        self, projected: Any, heads: int, mask: Any, keys: Any | None, threshold: int
    ) -> Any:
        """Attention of all heads.

        Args:
            projected: query, key and value side by side, [batch, length, 3 * hidden].
            heads: the number of heads.
            mask: float32, broadcastable to [batch, heads, length, length]; added to the scores.
            keys: the key words for dropping attention probabilities, or None.
            threshold: how many of 65,536 probabilities are dropped.

        Returns:
            [batch, length, hidden]
        """
        batch, length, width = ops.shape(projected)
        size = projected.shape[-1] // (3 * heads)
        query, key, value = (
            ops.transpose(ops.reshape(part, [batch, length, heads, size]), [0, 2, 1, 3])
            for part in ops.split(projected, 3, axis=-1)
        )  # each [batch, heads, length, size]
        scores = ops.matmul(query, ops.transpose(key, [0, 1, 3, 2]))  # [batch, heads, from, to]
        scores = ops.multiply(ops.cast(scores, "float32"), size**-0.5)
        probabilities = ops.softmax(ops.add(scores, mask), axis=-1)
        if keys is not None:
            probabilities = drop(probabilities, keys, threshold)
        context = ops.matmul(ops.cast(probabilities, value.dtype), value)
        return ops.reshape(ops.transpose(context, [0, 2, 1, 3]), [batch, length, width // 3])


PLAIN = PlainKernels()
_current: PlainKernels = PLAIN


def current() -> PlainKernels:
    """The kernels in use.

    Example:
        >>> with use(PLAIN):
        ...     current().name
        'plain'
    """
    return _current


def choose(kernels: PlainKernels) -> None:
    """Puts `kernels` in use for all models that are traced from now on, in every thread."""
    global _current
    _current = kernels


@contextlib.contextmanager
def use(kernels: PlainKernels) -> Iterator[None]:
    """Puts `kernels` in use inside the block."""
    before = _current
    choose(kernels)
    try:
        yield
    finally:
        choose(before)
