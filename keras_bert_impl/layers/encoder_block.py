"""One block of the encoder: attention, then a feed-forward layer, each with a residual."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers import dropout, kernels
from keras_bert_impl.layers.base import ConfiguredLayer
from keras_bert_impl.layers.self_attention import SelfAttention


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EncoderBlock(ConfiguredLayer):
    """Self-attention and feed-forward; after each: dropout, residual, LayerNorm (post-LN).

    Args:
        config: the model's configuration.
        block: the block's number, from 0.
        recompute: keep only the block's input for the backward pass and compute the block again
            there. Saves most of the activations' memory for about a third more time.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2)
        >>> hidden, mask = np.zeros([1, 5, 8], "float32"), np.zeros([1, 1, 1, 5], "float32")
        >>> tuple(EncoderBlock(config, block=0)(hidden, mask).shape)
        (1, 5, 8)
    """

    def __init__(
        self, config: BertConfig, block: int, recompute: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.block, self.recompute = block, recompute
        self.attention = SelfAttention(config, block, name="attention", dtype=self.dtype_policy)
        self.attention_output = self.dense(config.hidden_size, "attention_output")
        self.attention_dropout = self.dropout_layer(
            config.hidden_dropout_prob, dropout.attention_output(block), "attention_dropout"
        )
        self.attention_layer_norm = self.norm("attention_layer_norm")
        self.intermediate = self.dense(
            config.intermediate_size, "intermediate", activation=config.hidden_act
        )
        self.output_dense = self.dense(config.hidden_size, "output")
        self.output_dropout = self.dropout_layer(
            config.hidden_dropout_prob, dropout.feed_forward(block), "output_dropout"
        )
        self.output_layer_norm = self.norm("output_layer_norm")

    def build(self, hidden_shape: Any) -> None:
        """Makes the weights of the parts."""
        wide = (*hidden_shape[:-1], self.config.intermediate_size)
        for part in (
            self.attention,
            self.attention_output,
            self.attention_layer_norm,
            self.intermediate,
            self.output_layer_norm,
        ):
            part.build(hidden_shape)
        self.output_dense.build(wide)

    def call(self, hidden: Any, mask: Any, training: bool | None = None) -> Any:
        """Runs the block.

        Args:
            hidden: [batch, length, hidden]
            mask: float32, see `attention_mask`.
            training: whether to drop.

        Returns:
            [batch, length, hidden]
        """
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
            (self.attention_output.kernel, self.attention_output.bias),
            hidden,
            self.attention_layer_norm.parts(),
            self.attention_dropout.draw(training),
        )
        wide = self.intermediate(hidden)  # [batch, length, intermediate]
        return kernels.current().dense_add_norm(
            wide,
            (self.output_dense.kernel, self.output_dense.bias),
            hidden,
            self.output_layer_norm.parts(),
            self.output_dropout.draw(training),
        )

    def compute_output_shape(self, hidden_shape: Any) -> Any:
        """The shape of `hidden` does not change."""
        return hidden_shape

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "block": self.block, "recompute": self.recompute}
