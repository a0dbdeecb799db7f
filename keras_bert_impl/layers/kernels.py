"""The few computations that cost the time of a BERT step, in one place that can be exchanged.

Layers call `current()`. That is what the model that calls them computes with (its `kernels`), and
`PlainKernels`, plain `keras.ops` that run on every backend, where no model calls them.
`keras_bert_impl.cpu_kernels` has faster sets with the same results.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from keras import ops

from keras_bert_impl.layers.dropout import Draw, drop

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "gelu_tanh": lambda inputs: ops.gelu(inputs, approximate=True),
    "gelu_erf": lambda inputs: ops.gelu(inputs, approximate=False),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda inputs: inputs,
}


def activate(inputs: Any, name: str) -> Any:
    """Applies one of `ACTIVATIONS`, computed in float32; shape and type stay.

    Example:
        >>> import numpy as np
        >>> np.array(activate(np.array([-1.0, 2.0], "float32"), "relu")).tolist()
        [0.0, 2.0]
    """
    inputs = ops.convert_to_tensor(inputs)
    return ops.cast(_FUNCTIONS[name](ops.cast(inputs, "float32")), inputs.dtype)


class LowRank(NamedTuple):
    """A kernel that an adapter changes: kernel [in, out] + scale * a [in, rank] @ b [rank, out]."""

    kernel: Any
    a: Any
    b: Any
    scale: float


Dense = tuple[Any, Any]  # kernel (or a `LowRank`), bias
Projections = tuple[Dense, Dense, Dense]  # of query, key and value
Norm = tuple[Any, Any, float]  # gamma, beta, epsilon


class PlainKernels:
    """Each computation as plain `keras.ops`: the definition that faster sets are held to."""

    name = "plain"

    def product(self, inputs: Any, matrix: Any) -> Any:
        """[..., in] x [in, out] -> [..., out]."""
        return product(inputs, matrix)

    def dense(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        """`activation(inputs @ kernel + bias)`; [..., in] x [in, out] -> [..., out]."""
        kernel, bias = of_type(inputs.dtype, kernel, bias)
        return activate(ops.add(self.product(inputs, kernel), bias), activation)

    def scores(self, inputs: Any, kernel: Any, bias: Any) -> Any:
        """The last product of a head: float32 [..., in] x [in, out] + [out] -> [..., out]."""
        return self.dense(inputs, kernel, bias, activation="linear")

    def decode(self, hidden: Any, table: Any) -> Any:
        """Scores every token: [..., hidden] x [tokens, hidden] -> float32 [..., tokens].

        The product is of the type of `hidden`, and its sums become float32.
        """
        return ops.cast(self.product(hidden, ops.transpose(table)), "float32")

    def layer_norm(self, inputs: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
        """Layer normalization of the last axis, computed in float32, given as `dtype`."""
        numbers = ops.cast(inputs, "float32")
        centered = ops.subtract(numbers, ops.mean(numbers, axis=-1, keepdims=True))
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        scaled = ops.multiply(centered, ops.rsqrt(ops.add(variance, epsilon)))
        gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
        return ops.cast(ops.add(ops.multiply(scaled, gamma), beta), dtype)

    def dense_add_norm(
        self, inputs: Any, dense: Dense, residual: Any, norm: Norm, draw: Draw
    ) -> Any:
        """`norm(drop(inputs @ kernel + bias) + residual)`, the end of both halves of a block.

        Of inputs [batch, length, in] and a residual [batch, length, hidden], whose type it has.
        """
        dropped = drop(self.dense(inputs, *dense, activation="linear"), draw)
        # In float32: a sum of two numbers of float16 may be none of float16.
        total = ops.add(ops.cast(dropped, "float32"), ops.cast(residual, "float32"))
        return self.layer_norm(total, *norm, dtype=residual.dtype)

    def self_attention(
        self, hidden: Any, projections: Projections, heads: int, mask: Any, draw: Draw
    ) -> Any:
        """Attention of all heads, [batch, length, hidden], by kernels [hidden, hidden].

        The mask, float32 and broadcastable to [batch, heads, length, length], is added to the
        scores.
        """
        batch, length, width = ops.shape(hidden)
        # One product for all three; the result is [batch, length, 3 * hidden].
        projected = self.dense(hidden, *joined(projections), activation="linear")
        query, key, value = (
            ops.transpose(ops.reshape(part, [batch, length, heads, -1]), [0, 2, 1, 3])
            for part in ops.split(projected, 3, axis=-1)
        )  # each [batch, heads, length, size]
        scores = ops.matmul(query, ops.transpose(key, [0, 1, 3, 2]))  # [batch, heads, from, to]
        probabilities = self.attention_probabilities(scores, width // heads, mask, draw)
        context = ops.matmul(probabilities, value)
        return ops.reshape(ops.transpose(context, [0, 2, 1, 3]), [batch, length, width])

    def attention_probabilities(self, scores: Any, size: int, mask: Any, draw: Draw) -> Any:
        """Softmax and dropout of the scores, in float32; the type of `scores` comes back."""
        # In float32 whatever the compute type: bfloat16 cannot add up a long row of shares.
        numbers = ops.multiply(ops.cast(scores, "float32"), size**-0.5)
        probabilities = ops.softmax(ops.add(numbers, mask), axis=-1)
        return ops.cast(drop(probabilities, draw), scores.dtype)


def of_type(dtype: Any, kernel: Any, bias: Any) -> Dense:
    """Kernel and bias in the type that is computed in."""
    # Keras casts weights while a layer is called; what is computed again in the backward pass is
    # computed outside of any call.
    if isinstance(kernel, LowRank):
        matrix, a, b = (ops.cast(one, dtype) for one in kernel[:3])
        kernel = LowRank(matrix, a, b, kernel.scale)
    else:
        kernel = ops.cast(kernel, dtype)
    return kernel, ops.cast(bias, dtype)


def product(inputs: Any, kernel: Any) -> Any:
    """[..., in] x [in, out] -> [..., out], with what an adapter adds."""
    if isinstance(kernel, LowRank):
        # Apart, as in PEFT: a frozen kernel then needs no gradient, and rounding halves its error.
        change = ops.multiply(ops.matmul(inputs, kernel.a), kernel.scale)
        return ops.add(ops.matmul(inputs, kernel.kernel), ops.matmul(change, kernel.b))
    return ops.matmul(inputs, kernel)


def joined(projections: Projections) -> Dense:
    """Query, key and value as one layer: kernel [hidden, 3 * hidden], bias [3 * hidden]."""
    kernels, biases = zip(*projections, strict=True)
    bias = ops.concatenate(biases, axis=0)
    adapted = {at: one for at, one in enumerate(kernels) if isinstance(one, LowRank)}
    plain = [one.kernel if at in adapted else one for at, one in enumerate(kernels)]
    kernel = ops.concatenate(plain, axis=1)
    if not adapted:
        return kernel, bias
    # Each adds to its own columns.
    b = [
        ops.pad(
            ops.multiply(one.b, one.scale),
            [[0, 0], [at * one.b.shape[1], (2 - at) * one.b.shape[1]]],
        )
        for at, one in adapted.items()
    ]
    a = ops.concatenate([one.a for one in adapted.values()], axis=1)
    return LowRank(kernel, a, ops.concatenate(b, axis=0), 1.0), bias


PLAIN = PlainKernels()
_in_use: contextvars.ContextVar[PlainKernels | None] = contextvars.ContextVar(
    "kernels_in_use", default=None
)


def current() -> PlainKernels:
    """The kernels that a layer is to compute with now."""
    return _in_use.get() or PLAIN


@contextlib.contextmanager
def use(kernels: PlainKernels) -> Iterator[None]:
    """Makes layers compute with `kernels` inside the block, in this thread.

    It counts when a computation is traced: a graph keeps the kernels that it was traced with.
    """
    token = _in_use.set(kernels)
    try:
        yield
    finally:
        _in_use.reset(token)


def use_of_model(kernels: PlainKernels) -> contextlib.AbstractContextManager[None]:
    """`use`, unless kernels are in use already.

    So the outermost decides: a model over the models inside it, and the caller of `use` over all.

    Example:
        >>> with use(PLAIN), use_of_model(PlainKernels()):
        ...     current() is PLAIN
        True
    """
    return use(_in_use.get() or kernels)
