"""The encoder's layers: embeddings, and blocks of attention and a feed-forward layer."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import dropout, kernels
from keras_bert_impl.layers.base import ConfiguredLayer, SavedLayer, truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEmbeddings(ConfiguredLayer):
    """Turns ids into vectors: token + segment + position, LayerNorm, dropout.

    The tables are read in float32, so that the gradients of a repeated token are summed in float32.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> ids = np.zeros([2, 5], "int32")
        >>> tuple(BertEmbeddings(config)(ids, ids).shape)
        (2, 5, 8)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.layer_norm = self.norm("layer_norm")
        self.dropout = self.dropout_layer(config.hidden_dropout_prob, dropout.EMBEDDINGS)

    def build(self, input_ids_shape: Any) -> None:
        """Makes the three tables, [entries, hidden] each."""
        del input_ids_shape  # no table depends on it
        config = self.config
        self.token_table = self._table("token_embeddings", config.vocab_size)
        self.segment_table = self._table("segment_embeddings", config.type_vocab_size)
        self.position_table = self._table("position_embeddings", config.max_position_embeddings)
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, input_ids: Any, segment_ids: Any, training: bool | None = None) -> Any:
        """Maps two int32 [batch, length] to [batch, length, hidden]."""
        length = ops.shape(input_ids)[1]
        total = ops.take(self.token_table, input_ids, axis=0)  # [batch, length, hidden]
        # A slice: positions are 0, 1, … in every text, so that no gather is needed.
        total = ops.add(total, self.position_table[:length])
        # Two segments: a product with their one-hot code is cheaper than a second gather, and its
        # gradient is one product instead of a scatter.
        segments = ops.one_hot(segment_ids, self.config.type_vocab_size, dtype="float32")
        table = ops.convert_to_tensor(self.segment_table)
        total = ops.add(total, kernels.current().product(segments, table))
        return self.dropout(self.layer_norm(total), training=training)

    def compute_output_shape(self, input_ids_shape: Any) -> Any:
        return (*input_ids_shape, self.config.hidden_size)

    def _table(self, name: str, entries: int) -> Any:
        return self.add_weight(
            shape=(entries, self.config.hidden_size),
            initializer=truncated_normal(self.config.initializer_range),
            name=name,
            autocast=False,  # read in float32; see above
        )


# The original takes this from the score of a key that must not be seen. It is finite: with minus
# infinity the softmax of a row of padding alone would be NaN, and bfloat16 and float16 can hold it.
_HIDDEN = 10000.0


def attention_mask(input_mask: Any, causal: bool, anticausal: bool = False) -> Any:
    """The numbers to add to the attention scores, of an input mask int [batch, length].

    float32 [batch, 1, 1, length], or [batch, 1, length, length] if `causal` also hides the keys
    that come after the query, or `anticausal` those before it. 0 where a key is seen, -10000 where
    it is hidden: next to any key that is seen, its share is 0 to the last bit.

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
class AttentionMask(SavedLayer):
    """`attention_mask` as a layer: computed once for all blocks."""

    saves = ("causal", "anticausal")

    def __init__(self, causal: bool = False, anticausal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal, self.anticausal = causal, anticausal
        self.built = True

    def call(self, input_mask: Any) -> Any:
        return attention_mask(input_mask, self.causal, self.anticausal)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SelfAttention(ConfiguredLayer):
    """Query, key and value of every head, and what each position gathers from the others.

    The three projections are three weights (as in every checkpoint), but one matrix product.
    The number of the block gives it a stream of dropout draws of its own.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> hidden, mask = np.zeros([1, 5, 8], "float32"), np.zeros([1, 1, 1, 5], "float32")
        >>> tuple(SelfAttention(config, block=0)(hidden, mask).shape)
        (1, 5, 8)
    """

    saves = ("block",)

    def __init__(self, config: BertConfig, block: int, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.block = block
        width = config.hidden_size
        self.projections = [self.dense(width, name) for name in ("query", "key", "value")]
        stream, _, _ = dropout.block_streams(block)
        self.dropout = self.dropout_layer(config.attention_probs_dropout_prob, stream)

    def build(self, hidden_shape: Any) -> None:
        """Makes the kernels [hidden, hidden] and biases [hidden] of query, key and value."""
        for projection in self.projections:
            projection.build(hidden_shape)

    def call(self, hidden: Any, mask: Any, training: bool | None = None) -> Any:
        """Maps [batch, length, hidden] to the same, by the mask of `attention_mask`."""
        query, key, value = (part.parts() for part in self.projections)
        heads, draw = self.config.num_attention_heads, self.dropout.draw(training)
        return kernels.current().self_attention(hidden, (query, key, value), heads, mask, draw)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EncoderBlock(ConfiguredLayer):
    """Self-attention and feed-forward; after each: dropout, residual, LayerNorm (post-LN).

    With `recompute` only the block's input is kept for the backward pass, and the block computed
    again there: it saves most of the activations' memory for about a third more time.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> hidden, mask = np.zeros([1, 5, 8], "float32"), np.zeros([1, 1, 1, 5], "float32")
        >>> tuple(EncoderBlock(config, block=0)(hidden, mask).shape)
        (1, 5, 8)
    """

    saves = ("block", "recompute")

    def __init__(
        self, config: BertConfig, block: int, recompute: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.block, self.recompute = block, recompute
        self.attention = SelfAttention(config, block, name="attention", dtype=self.dtype_policy)
        rate = config.hidden_dropout_prob
        _, of_attention, of_output = dropout.block_streams(block)
        self.attention_output = self.dense(config.hidden_size, "attention_output")
        self.attention_dropout = self.dropout_layer(rate, of_attention, "attention_dropout")
        self.attention_layer_norm = self.norm("attention_layer_norm")
        self.intermediate = self.dense(config.intermediate_size, "intermediate", config.hidden_act)
        self.output_dense = self.dense(config.hidden_size, "output")
        self.output_dropout = self.dropout_layer(rate, of_output, "output_dropout")
        self.output_layer_norm = self.norm("output_layer_norm")

    def build(self, hidden_shape: Any) -> None:
        of_attention = (self.attention, self.attention_output, self.attention_layer_norm)
        for part in (*of_attention, self.intermediate, self.output_layer_norm):
            part.build(hidden_shape)
        self.output_dense.build((*hidden_shape[:-1], self.config.intermediate_size))

    def call(self, hidden: Any, mask: Any, training: bool | None = None) -> Any:
        """Maps [batch, length, hidden] to the same, by the mask of `attention_mask`."""
        if not (self.recompute and training):
            return self._compute(hidden, mask, training)
        # The second computation must drop the same numbers: both stand at one address. Without one
        # (in plain `fit`) new keys are drawn once, outside of what is computed twice.
        keys = dropout.present_keys()
        if keys is None:
            keys = self._fresh_keys()

        chosen = kernels.current()  # the backward pass runs outside of the model's call

        def compute(inputs: Any) -> Any:
            with dropout.at_keys(keys), kernels.use(chosen):
                return self._compute(inputs, mask, training)

        return keras.remat(compute)(hidden)

    def compute_output_shape(self, hidden_shape: Any) -> Any:
        return hidden_shape  # said here, because Keras would trace every block to find it out

    def _fresh_keys(self) -> Any | None:
        """Key words for all draws of one call; None where nothing is ever dropped."""
        # Dropouts of rate 0 have no seed generator to draw from.
        dropouts = (self.output_dropout, self.attention.dropout)
        active = next((dropout for dropout in dropouts if dropout.threshold), None)
        return active.fresh_keys() if active else None

    def _compute(self, hidden: Any, mask: Any, training: bool | None) -> Any:
        context = self.attention(hidden, mask, training=training)
        hidden = kernels.current().dense_add_norm(
            context,
            self.attention_output.parts(),
            hidden,
            self.attention_layer_norm.parts(),
            self.attention_dropout.draw(training),
        )
        wide = self.intermediate(hidden)  # [batch, length, intermediate]
        return kernels.current().dense_add_norm(
            wide,
            self.output_dense.parts(),
            hidden,
            self.output_layer_norm.parts(),
            self.output_dropout.draw(training),
        )
