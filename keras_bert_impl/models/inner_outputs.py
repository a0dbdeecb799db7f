"""What a model computes inside: the vectors of each layer and the attention probabilities."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import Draw
from keras_bert_impl.models.base import ConfiguredModel
from keras_bert_impl.models.encoder import BertEncoder


class RecordingKernels(kernels.PlainKernels):
    """`PlainKernels` that keep the attention probabilities of every block that computes with them.

    [batch, heads, length, length] each, in the order of computation. For one pass of one model.
    """

    name = "recording"

    def __init__(self) -> None:
        self.probabilities: list[Any] = []

    def attention_probabilities(self, scores: Any, size: int, mask: Any, draw: Draw) -> Any:
        probabilities = super().attention_probabilities(scores, size, mask, draw)
        self.probabilities.append(probabilities)
        return probabilities


class RecordedStates:
    """Any set of kernels that also keeps what goes into each block and what comes out.

    [batch, length, hidden] each. For one pass of one model, also inside of a graph that is traced
    and of a gradient.
    """

    def __init__(self, chosen: kernels.PlainKernels) -> None:
        self._chosen = chosen
        self.inputs, self._sums = list[Any](), list[Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen, name)

    @property
    def outputs(self) -> list[Any]:
        return self._sums[1::2]  # the first of a block is that of its attention

    def self_attention(self, hidden: Any, *rest: Any) -> Any:
        self.inputs.append(hidden)
        return self._chosen.self_attention(hidden, *rest)

    def dense_add_norm(self, *given: Any) -> Any:
        self._sums.append(self._chosen.dense_add_norm(*given))
        return self._sums[-1]


def attention_probabilities(
    model: ConfiguredModel, inputs: Mapping[str, Any]
) -> NDArray[np.float32]:
    """How much each token of each row gathers from each other token, in every head of every block.

    Nothing is dropped. The model computes with plain kernels here, whatever its own are. The result
    is float32 [layers, batch, heads, from, to]: each row adds up to 1, what is hidden gets 0.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> from keras_bert_impl.models.encoder import BertEncoder
        >>> encoder = BertEncoder(named_config("tiny", 10))
        >>> attention_probabilities(encoder, {"input_ids": np.array([[2, 5, 3]])}).shape
        (2, 1, 2, 3, 3)
    """
    return np.asarray(ops.cast(ops.stack(recorded_probabilities(model, inputs)), "float32"))


def recorded_probabilities(model: ConfiguredModel, inputs: Mapping[str, Any]) -> list[Any]:
    """[batch, heads, from, to] of each block as tensors, also inside of a graph that is traced."""
    recording = RecordingKernels()
    with kernels.use(recording):
        model(inputs, training=False)
    return recording.probabilities


def hidden_states(model: ConfiguredModel, inputs: Mapping[str, Any]) -> list[Any]:
    """The embeddings' output and that of each block, [batch, length, hidden] each.

    Nothing is dropped. The inputs are all those of the encoder.
    """
    encoder: Any = model if isinstance(model, BertEncoder) else model.encoder
    layers = [encoder.embeddings, *encoder.blocks]
    inside = keras.Model(encoder.input, [layer.output for layer in layers])
    names = tuple(encoder.input)
    flat = {name: ops.reshape(inputs[name], (-1, ops.shape(inputs[name])[-1])) for name in names}
    return list(inside(flat, training=False))


class AttentionOutputs:
    """An encoder with one output for engines: its attention [batch, layers, heads, from, to]."""

    def __init__(self, encoder: ConfiguredModel) -> None:
        self._encoder = encoder
        self.input = encoder.input
        self.output = {"attention": None}

    def __call__(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, Any]:
        """The output by its name; nothing is dropped."""
        del training
        recorded = ops.stack(recorded_probabilities(self._encoder, inputs))
        probabilities = ops.cast(recorded, "float32")
        return {"attention": ops.transpose(probabilities, [1, 0, 2, 3, 4])}
