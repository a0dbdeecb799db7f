"""Kernels for JAX on a GPU: attention without its matrix of probabilities (flash attention)."""

import functools
import math
from typing import Any

import keras
from keras import ops

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import Draw, drop


class FlashKernels(kernels.PlainKernels):
    """`PlainKernels` with cuDNN's attention, which keeps no number for each pair of tokens.

    And with a kernel of our own for the end of both halves of a block, where there is one GPU.

    It takes batches in float16 or bfloat16 whose rows hold their tokens first and padding after
    them, as all packers here make them. A batch with padding before a token becomes NaN as a
    whole, because cuDNN is told lengths only: take `PLAIN` for such rows. Padding attends to
    nothing. What cuDNN cannot compute so is left to the plain attention: float32, dropped
    probabilities, attention in one direction, heads whose size is no multiple of 8 or above 128.

    Args:
        implementation: of `jax.nn.dot_product_attention`: "cudnn", or "xla" on any device, where
            our own kernel is interpreted.
    """

    name = "flash"

    def __init__(self, implementation: str = "cudnn") -> None:
        self._implementation = implementation

    # All is computed of rows, [..., width] as [rows, width]: left with three axes, XLA stores the
    # vectors between the blocks with the batch innermost, and transposes them around each product.

    def product(self, inputs: Any, matrix: Any) -> Any:
        return _like(super().product(_rows_of(inputs), matrix), inputs)

    def dense(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        """See `PlainKernels.dense`; the backward pass keeps the product alone."""
        kernel, bias = kernels.of_type(inputs.dtype, kernel, bias)
        rows = kernels.product(_rows_of(inputs), kernel)
        finish = functools.partial(_add_and_activate, activation=activation)
        rows = (finish if activation == "linear" else keras.remat(finish))(rows, bias)
        return _like(rows, inputs)

    def layer_norm(self, inputs: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
        return _like(super().layer_norm(_rows_of(inputs), gamma, beta, epsilon, dtype), inputs)

    def dense_add_norm(
        self, inputs: Any, dense: kernels.Dense, residual: Any, norm: kernels.Norm, draw: Draw
    ) -> Any:
        from keras_bert_impl.layers import gpu_norm

        rows, rest = _rows_of(inputs), _rows_of(residual)
        if not gpu_norm.fits(residual.shape[-1], ops.dtype(inputs)):
            return _like(super().dense_add_norm(rows, dense, rest, norm, draw), residual)
        kernel, bias = kernels.of_type(rows.dtype, *dense)
        rows = kernels.product(rows, kernel)
        if draw.keys is not None:  # what is dropped has its bias
            rows, bias = drop(ops.add(rows, bias), draw), ops.zeros_like(bias)
        gamma, beta, epsilon = norm
        tensors = rows, bias, rest, ops.convert_to_tensor(gamma), ops.convert_to_tensor(beta)
        interpret = self._implementation != "cudnn"
        return _like(gpu_norm.bias_add_norm(*tensors, epsilon, interpret), residual)

    def self_attention(
        self, hidden: Any, projections: kernels.Projections, heads: int, mask: Any, draw: Draw
    ) -> Any:
        batch, length, width = hidden.shape
        fits = mask.shape[2] == 1 and width // heads in range(8, 129, 8)
        if not fits or draw.keys is not None or ops.dtype(hidden) == "float32":
            return super().self_attention(hidden, projections, heads, mask, draw)
        import jax

        lengths, wrong = _tokens_first(mask[:, 0, 0, :])
        (kernel, bias), *keys_and_values = projections
        # In a vector, which the product adds: a pass over all queries would cost as much as a norm.
        of_query = kernel, ops.add(bias, ops.cast(wrong, ops.dtype(bias)))
        # Three products: cuDNN wants each in memory of its own. The barriers, which must differ,
        # keep XLA from joining products of one tensor and copying the parts of the result.
        query, key, value = (
            ops.reshape(self.dense(rows, kernel, bias, "linear"), [batch, length, heads, -1])
            for kernel, vector in (of_query, *keys_and_values)
            for rows, bias in [jax.lax.optimization_barrier((hidden, vector))]
        )
        context = jax.nn.dot_product_attention(
            query,
            key,
            value,
            query_seq_lengths=lengths,
            key_value_seq_lengths=lengths,
            implementation=self._implementation,
        )
        return ops.reshape(context, [batch, length, width])


def _add_and_activate(rows: Any, bias: Any, activation: str) -> Any:
    total = ops.add(rows, bias)
    if activation != "gelu_tanh":
        return kernels.activate(total, activation)
    return ops.cast(_gelu(ops.cast(total, "float32")), total.dtype)


@ops.custom_gradient
def _gelu(x: Any) -> tuple[Any, Any]:
    """GELU by tanh, of float32, and its gradient."""
    # (1 + tanh(z)) / 2 is the sigmoid of 2 z, and 1 / (1 + e) the square of a reciprocal root, for
    # which a GPU has an instruction: XLA's tanh or division would take longer than the memory.
    root_2_pi, squares = math.sqrt(2 / math.pi), x * x
    z = root_2_pi * x * (1 + 0.044715 * squares)
    root = ops.rsqrt(1 + ops.exp(ops.minimum(-2 * z, 80.0)))  # e^89 is no float32
    share = root * root

    def gradient(*given: Any, upstream: Any = None) -> Any:
        above = given[0] if upstream is None else upstream
        slope = 2 * root_2_pi * (1 + 3 * 0.044715 * squares)
        return above * share * (1 + x * (1 - share) * slope)

    return x * share, gradient


def _rows_of(tensor: Any) -> Any:
    return ops.reshape(tensor, [-1, tensor.shape[-1]])


def _like(rows: Any, tensor: Any) -> Any:
    return ops.reshape(rows, [*tensor.shape[:-1], rows.shape[-1]])


def _tokens_first(mask: Any) -> tuple[Any, Any]:
    """How many tokens each row has, int32 [batch], of a mask [batch, length].

    And NaN where one has padding before a token, otherwise 0.
    """
    seen = ops.equal(mask, 0)
    tokens = ops.sum(ops.cast(seen, "int32"), axis=1)
    first = ops.less(ops.arange(ops.shape(mask)[1]), ops.expand_dims(tokens, 1))
    right = ops.all(ops.equal(seen, first))
    # A row of padding alone sees its first position, so that it is finite in any implementation.
    # Where a mask is wrong, all positions count: what is beyond a row's end would be 0, not NaN.
    lengths = ops.where(right, ops.maximum(tokens, 1), mask.shape[1])
    wrong = ops.where(right, 0.0, float("nan"))
    return ops.cast(lengths, "int32"), wrong
