"""The BERT encoder."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.encoder_block import AttentionMask, BertEmbeddings, EncoderBlock
from keras_bert_impl.layers.heads import Pooler
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEncoder(ConfiguredModel):
    """Turns ids into vectors.

    Takes a dict of int32 `input_ids`, `input_mask`, `segment_ids`, [batch, length] each. Gives a
    dict: `sequence_output` [batch, length, hidden] and `pooled_output` [batch, hidden]; with
    `return_all_layers` also `embedding_output` [batch, length, hidden] and `all_encoder_layers`
    [blocks, batch, length, hidden].

    Every weight's `path` tells what it is: biases end with "/bias" or "/output_bias", LayerNorm's
    weights with "layer_norm/gamma" and "layer_norm/beta"; these are the weights that BERT's
    optimizer leaves out of weight decay. Everything else ends with "/kernel" or "_embeddings".

    Args:
        config: the model's configuration.
        return_all_layers: whether to give the vectors of every layer.
        recompute: whether blocks compute their activations again in the backward pass instead of
            keeping them; see `EncoderBlock`.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> outputs = BertEncoder(named_config("tiny", 10))({"input_ids": np.array([[2, 5, 3]])})
        >>> tuple(outputs["sequence_output"].shape), tuple(outputs["pooled_output"].shape)
        ((1, 3, 128), (1, 128))
    """

    saves = ("return_all_layers", "recompute")

    def __init__(
        self,
        config: BertConfig,
        return_all_layers: bool = False,
        recompute: bool = False,
        **kwargs: Any,
    ) -> None:
        dtype = kwargs.pop("dtype", None)
        inputs = encoder_inputs()
        embeddings = BertEmbeddings(config, name="embeddings", dtype=dtype)
        blocks = [
            EncoderBlock(config, number, recompute, name=f"layer_{number}", dtype=dtype)
            for number in range(config.num_hidden_layers)
        ]
        pooler = Pooler(config, name="pooler", dtype=dtype)

        hide = AttentionMask(
            config.causal, config.anticausal, name="attention_mask", dtype="float32"
        )
        mask = hide(inputs["input_mask"])
        embedded = embeddings(inputs["input_ids"], inputs["segment_ids"])
        layers, hidden = [], embedded
        for block in blocks:
            hidden = block(hidden, mask)
            layers.append(hidden)

        outputs = {"sequence_output": hidden, "pooled_output": pooler(hidden)}
        if return_all_layers:
            outputs["embedding_output"] = embedded
            # Stacked in the graph only where asked for: it copies every layer's output.
            outputs["all_encoder_layers"] = ops.stack(layers, axis=0)
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.return_all_layers = return_all_layers
        self.embeddings, self.blocks, self.pooler = embeddings, blocks, pooler

    @property
    def recompute(self) -> bool:
        """Whether the blocks compute their activations again in the backward pass.

        May be set on a finished model; what is traced from then on does so.
        """
        return bool(self.blocks[0].recompute)

    @recompute.setter
    def recompute(self, on: bool) -> None:
        for block in self.blocks:
            block.recompute = on
