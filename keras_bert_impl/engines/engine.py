"""The interface of an engine: batches in, outputs out, in any order, several at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.cpu_kernels.kernel_choice import forward_function

Features = Mapping[str, NDArray[np.int32]]
Outputs = dict[str, NDArray]
Key = TypeVar("Key")


class Engine(Protocol):
    """Computes a trained model's outputs.

    Attributes:
        tokens_at_once: how many positions a batch should have.
        batches_at_once: how many batches are computed at the same time.
        few_lengths: whether batches should have few different lengths, because each is prepared
            for; else rows need no more padding than to the longest of their batch.
    """

    tokens_at_once: int
    batches_at_once: int
    few_lengths: bool

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        """The outputs of every batch.

        Args:
            batches: of each a key and int32 [rows, length] by the names of the model's inputs.

        Yields:
            The key, and the model's outputs by name. The order may be another one.
        """
        ...

    def identity(self) -> str | None:
        """Tells apart what the outputs depend on besides the model's weights; None if nothing."""
        ...


class KerasEngine:
    """The fastest that TensorFlow has here; elsewhere Keras' own prediction.

    The model's weights at the first call count.

    Args:
        model: one of this project's models.

    Example:
        >>> from keras_bert_impl.config import BertConfig
        >>> from keras_bert_impl.models.encoder import BertEncoder
        >>> engine = KerasEngine(BertEncoder(BertConfig(
        ...     vocab_size=10, hidden_size=8, num_attention_heads=2, num_hidden_layers=1,
        ...     intermediate_size=16)))
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> batch = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}
        >>> [(key, outputs["pooled_output"].shape) for key, outputs in engine.compute([(7, batch)])]
        [(7, (1, 8))]
    """

    tokens_at_once = 4096
    batches_at_once = 1
    few_lengths = True

    def __init__(self, model: Any) -> None:
        self._model = model
        self._forward: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        """See `Engine.compute`; one after the other."""
        forward = self._forward = self._forward or forward_function(self._model)
        for key, features in batches:
            outputs = forward(features)
            yield key, {name: np.asarray(value) for name, value in outputs.items()}

    def identity(self) -> None:
        """Nothing beyond the weights."""
