"""Kernels for JAX on a GPU: attention without its matrix of probabilities (flash attention)."""

from typing import Any

from keras import ops

from keras_bert_impl.layers.dropout import Draw
from keras_bert_impl.layers.kernels import PlainKernels, Projections


class FlashKernels(PlainKernels):
    """`PlainKernels` whose attention is cuDNN's, which keeps no number for each pair of tokens.

    It takes batches in float16 or bfloat16 whose rows hold their tokens first and padding after
    them, as all packers here make them; any other mask of padding gives NaN. Padding attends to
    nothing. Float32, dropped probabilities and attention in one direction, which cuDNN cannot
    compute so, are left to the plain attention.

    Args:
        implementation: of `jax.nn.dot_product_attention`: "cudnn", or "xla" on any device.
    """

    name = "flash"

    def __init__(self, implementation: str = "cudnn") -> None:
        self._implementation = implementation

    def self_attention(
        self, hidden: Any, projections: Projections, heads: int, mask: Any, draw: Draw
    ) -> Any:
        """See `PlainKernels.self_attention`."""
        in_one_direction = mask.shape[2] != 1
        if draw.keys is not None or in_one_direction or ops.dtype(hidden) == "float32":
            return super().self_attention(hidden, projections, heads, mask, draw)
        import jax

        batch, length, width = hidden.shape
        lengths, wrong = _tokens_first(mask[:, 0, 0, :])
        # Three products: cuDNN wants each in memory of its own, and would have one copied.
        query, key, value = (
            ops.reshape(
                self.dense(hidden, kernel, ops.add(bias, wrong), "linear"),
                [batch, length, heads, -1],
            )
            for kernel, bias in projections
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


def _tokens_first(mask: Any) -> tuple[Any, Any]:
    """How many tokens each row has, int32 [batch], of a mask [batch, length].

    And what makes every number NaN where padding stands before a token of its row, otherwise 0.
    """
    seen = ops.equal(mask, 0)
    tokens = ops.sum(ops.cast(seen, "int32"), axis=1)
    first = ops.less(ops.arange(ops.shape(mask)[1]), ops.expand_dims(tokens, 1))
    right = ops.all(ops.equal(seen, first))
    # A row of padding alone sees its first position, so that it is finite in any implementation.
    return ops.maximum(tokens, 1), ops.where(right, 0.0, float("nan"))
