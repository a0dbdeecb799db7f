"""The input of a head: the encoder's vectors, maybe through a BiLSTM, and one for them all.

A BiLSTM between encoder and head is what the paper tries to give a left-to-right model the other
side of a token (section 5.1). It is added for fine-tuning: a pre-trained checkpoint has none, and
its weights start at random.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.bilstm import StackedBiLSTM
from keras_bert_impl.layers.heads import FinalStates, LastToken, MaskedMean
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.head_settings import CLS, LAST, MEAN, POOLER, has_bilstm, pooling_of


@dataclass(frozen=True)
class HeadInputs:
    """The vectors that an encoder gives to a head.

    Attributes:
        encoder: the encoder.
        config: says whether a BiLSTM follows, and which vector stands for the whole input.
        inputs: symbolic inputs of the encoder, [batch, length] each.
        sequence: a vector a token, [batch, length, hidden].
        outputs: of the encoder.
    """

    encoder: BertEncoder
    config: BertConfig
    inputs: Mapping[str, Any]
    sequence: Any
    outputs: Mapping[str, Any]

    @classmethod
    def of(cls, config: BertConfig, inputs: Mapping[str, Any], dtype: Any = None) -> "HeadInputs":
        """Builds the encoder, named "encoder", and the BiLSTM where the configuration says one.

        Args:
            config: the model's configuration.
            inputs: symbolic inputs of the encoder.
            dtype: a Keras dtype policy or its name.

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
    if config.hidden_size % 2:
        raise UserError(
            f"{config.origin}: hidden_size {config.hidden_size} is odd; a BiLSTM needs half of "
            "it for each direction."
        )
    return StackedBiLSTM(config.hidden_size // 2, depth=1, name="bilstm", dtype=dtype)


def pooled_vector(pooling: str, encoded: Mapping[str, Any], input_mask: Any) -> Any:
    """The vector of the whole input: [batch, hidden]; a mean is float32 at every precision.

    Args:
        pooling: one of `pooling.POOLINGS`.
        encoded: the outputs of a `BertEncoder`.
        input_mask: int [batch, length].
    """
    if pooling == POOLER:
        return encoded["pooled_output"]
    if pooling == CLS:
        return encoded["sequence_output"][:, 0, :]
    mean = MaskedMean(name="mean", dtype="float32")
    return mean(encoded["sequence_output"], input_mask)
