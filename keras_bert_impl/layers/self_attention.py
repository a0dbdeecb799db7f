"""Multi-head self-attention."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import dropout, kernels
from keras_bert_impl.layers.base import ConfiguredLayer

# The original takes this from the score of a key that must not be seen. It is finite: with minus
# infinity the softmax of a row of padding alone would be NaN, and bfloat16 and float16 can hold it.
_HIDDEN = 10000.0


def attention_mask(input_mask: Any, causal: bool, anticausal: bool = False) -> Any:
    """The numbers to add to the attention scores.

    Args:
        input_mask: int [batch, length]; 1 for a token, 0 for padding.
        causal: also hide the keys that come after the query.
        anticausal: also hide those that come before it.

    Returns:
        float32 [batch, 1, 1, length], or [batch, 1, length, length] if a direction is hidden; 0
        where a key is seen, -10000 where it is hidden: next to any key that is seen, its share is
        0 to the last bit.

    Example:
        >>> import numpy as np
        >>> np.array(attention_mask(np.array([[1, 0]]), causal=False)).tolist()
        [[[[0.0, -10000.0]]]]
    """
    # Not by an index: LiteRT has no operation for new axes of a tensor whose sizes are open.
    seen = ops.expand_dims(ops.cast(input_mask, "float32"), (1, 2))
    if causal or anticausal:
        order = ops.arange(ops.shape(input_mask)[1])
        key, query = order[None, :], order[:, None]
        open_keys = key <= query if causal else key >= query
        seen = ops.multiply(seen, ops.cast(open_keys, "float32"))
    return ops.multiply(ops.subtract(seen, 1.0), _HIDDEN)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AttentionMask(keras.layers.Layer):
    """`attention_mask` as a layer: computed once for all blocks."""

    def __init__(self, causal: bool = False, anticausal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal, self.anticausal = causal, anticausal
        self.built = True

    def call(self, input_mask: Any) -> Any:
        """Int [batch, length] -> float32, see `attention_mask`."""
        return attention_mask(input_mask, self.causal, self.anticausal)

    def compute_output_shape(self, input_mask_shape: Any) -> Any:
        """[batch, 1, 1, length], or [batch, 1, length, length] if a direction is hidden."""
        batch, length = input_mask_shape
        return (batch, 1, length if self.causal or self.anticausal else 1, length)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "causal": self.causal, "anticausal": self.anticausal}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SelfAttention(ConfiguredLayer):
    """Query, key and value of every head, and what each position gathers from the others.

    The three projections are three weights (as in every checkpoint), but one matrix product.

    Args:
        config: the model's configuration.
        block: the block's number, for its own stream of dropout draws.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> hidden, mask = np.zeros([1, 5, 8], "float32"), np.zeros([1, 1, 1, 5], "float32")
        >>> tuple(SelfAttention(config, block=0)(hidden, mask).shape)
        (1, 5, 8)
    """

    def __init__(self, config: BertConfig, block: int, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.block = block
        self.projections = [
            self.dense(config.hidden_size, name) for name in ("query", "key", "value")
        ]
        self.dropout = self.dropout_layer(
            config.attention_probs_dropout_prob, dropout.attention_probabilities(block)
        )

    def build(self, hidden_shape: Any) -> None:
        """Makes the kernels [hidden, hidden] and biases [hidden] of query, key and value."""
        for projection in self.projections:
            projection.build(hidden_shape)

    def call(self, hidden: Any, mask: Any, training: bool | None = None) -> Any:
        """Attends.

        Args:
            hidden: [batch, length, hidden]
            mask: float32, see `attention_mask`.
            training: whether to drop attention probabilities.

        Returns:
            [batch, length, hidden]
        """
        query, key, value = ((part.kernel, part.bias) for part in self.projections)
        return kernels.current().self_attention(
            hidden,
            (query, key, value),
            self.config.num_attention_heads,
            mask,
            self.dropout.draw(training),
        )

    def compute_output_shape(self, hidden_shape: Any) -> Any:
        """The shape of `hidden` does not change."""
        return hidden_shape

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "block": self.block}
