"""The BERT encoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.bilstm import StackedBiLSTM
from keras_bert_impl.layers.encoder_block import AttentionMask, BertEmbeddings, EncoderBlock
from keras_bert_impl.layers.heads import FinalStates, LastToken, MaskedMean, Pooler
from keras_bert_impl.models.base import ConfiguredModel, encoder_inputs
from keras_bert_impl.models.head_settings import CLS, LAST, MEAN, POOLER, has_bilstm, pooling_of


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
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        inputs = encoder_inputs()
        embeddings = BertEmbeddings(config, name="embeddings", dtype=dtype)
        blocks = [
            EncoderBlock(config, number, recompute, name=f"layer_{number}", dtype=dtype)
            for number in range(config.num_hidden_layers)
        ]
        pooler = Pooler(config, name="pooler", dtype=dtype)

        directions = (config.causal, config.anticausal)
        hide = AttentionMask(*directions, name="attention_mask", dtype="float32")
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


@dataclass(frozen=True)
class HeadInputs:
    """The vectors that an encoder gives to a head; `sequence` is [batch, length, hidden]."""

    encoder: BertEncoder
    config: BertConfig
    inputs: Mapping[str, Any]
    sequence: Any
    outputs: Mapping[str, Any]

    @classmethod
    def of(cls, config: BertConfig, inputs: Mapping[str, Any], dtype: Any = None) -> "HeadInputs":
        """Builds the encoder, named "encoder", and the BiLSTM where the configuration says one.

        Example:
            >>> from keras_bert_impl.models.base import encoder_inputs
            >>> from keras_bert_impl.models.head_settings import with_bilstm
            >>> from keras_bert_impl.config import named_config
            >>> config = with_bilstm(named_config("tiny", 10), True)
            >>> read = HeadInputs.of(config, encoder_inputs())
            >>> read.sequence.shape, read.pooled().shape
            ((None, None, 128), (None, 128))
        """
        encoder = BertEncoder(config, name="encoder", dtype=dtype)
        outputs = encoder(inputs)
        sequence = outputs["sequence_output"]
        if has_bilstm(config):
            sequence = _bilstm(config, dtype)(sequence, inputs["input_mask"])
        return cls(encoder, config, inputs, sequence, outputs)

    def pooled(self) -> Any:
        """The vector of the whole input: [batch, hidden]; see `models.head_settings`."""
        pooling, mask = pooling_of(self.config), self.inputs["input_mask"]
        if pooling in (MEAN, CLS):
            return pooled_vector(pooling, {**self.outputs, "sequence_output": self.sequence}, mask)
        if has_bilstm(self.config):
            # Whatever the direction of the encoder's attention, each end has seen all of it.
            states = FinalStates(name="final_states", dtype=self.sequence.dtype)
            return self.encoder.pooler(states(self.sequence, mask))
        if pooling == LAST:
            last = LastToken(name="last_token", dtype=self.sequence.dtype)
            return self.encoder.pooler(last(self.sequence, mask))
        return pooled_vector(POOLER, self.outputs, mask)


def _bilstm(config: BertConfig, dtype: Any) -> StackedBiLSTM:
    # Each direction has half the hidden size, so that the heads' weights keep their shapes.
    half, odd = divmod(config.hidden_size, 2)
    if odd:
        fault = f"hidden_size {config.hidden_size} is odd"
        raise UserError(f"{config.origin}: {fault}; a BiLSTM needs half of it for each direction.")
    return StackedBiLSTM(half, depth=1, name="bilstm", dtype=dtype)


def pooled_vector(pooling: str, encoded: Mapping[str, Any], input_mask: Any) -> Any:
    """The vector of a whole input, of an encoder's outputs; a mean is float32 at every precision.

    `pooling` is one of `POOLINGS`, the mask int [batch, length]; the vectors are [batch, hidden].
    """
    if pooling == POOLER:
        return encoded["pooled_output"]
    if pooling == CLS:
        return encoded["sequence_output"][:, 0, :]
    mean = MaskedMean(name="mean", dtype="float32")
    return mean(encoded["sequence_output"], input_mask)
