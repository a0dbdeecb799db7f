"""The interface of an engine: batches in, outputs out, in any order, several at a time."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError

Features = Mapping[str, NDArray[np.int32]]
Outputs = dict[str, NDArray]
Key = TypeVar("Key")


class NotFiniteError(UserError):
    """A model gave numbers that are NaN or infinite: no answer is made of them."""


def check_finite(outputs: Mapping[str, NDArray], origin: object) -> None:
    """Refuses a model's numbers that are NaN or infinite; all that leaves a model passes here.

    Example:
        >>> check_finite({"logits": np.array([1.0, np.nan])}, "runs/mrpc/model")
        Traceback (most recent call last):
        keras_bert_impl.engines.engine.NotFiniteError: runs/mrpc/model: its logits are NaN or \
infinite, because weights are damaged, training diverged or the precision overflows; take another \
checkpoint, or `precision=float32`.
    """
    for name, array in outputs.items():
        if not np.isfinite(array).all():
            raise NotFiniteError(
                f"{origin}: its {name} are NaN or infinite, because weights are damaged, training "
                "diverged or the precision overflows; take another checkpoint, or "
                "`precision=float32`."
            )


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
        """The outputs by name of every batch, int32 [rows, length] by the names of the inputs.

        They may come in another order: a batch and its outputs have the same key.
        """
        ...

    def compute_one(self, features: Features) -> Outputs:
        """The outputs of one batch; several threads may ask at the same time.

        A closed engine raises a `RuntimeError`.
        """
        ...

    def identity(self) -> str | None:
        """Tells apart what the outputs depend on besides the model's weights; None if nothing."""
        ...

    def close(self) -> None:
        """Waits for what is being computed, and lets the model go; more than once does no harm."""
        ...


class KerasEngine:
    """The fastest that TensorFlow has here; elsewhere Keras' own prediction.

    The model's weights at the first call count, or those of each call of one that may be trained.

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

    def __init__(self, model: Any, may_be_trained: bool = False) -> None:
        self._model, self._may_be_trained, self._num_weights = model, may_be_trained, 0
        self._forward: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
        self._lock = threading.Lock()

    def compute(self, batches: Iterable[tuple[Key, Features]]) -> Iterator[tuple[Key, Outputs]]:
        """See `Engine.compute`; one after the other."""
        for key, features in batches:
            yield key, self.compute_one(features)

    def compute_one(self, features: Features) -> Outputs:
        """See `Engine.compute_one`; TensorFlow takes all cores for each batch."""
        with self._lock:
            outputs = self._opened()(features)
            return {name: np.asarray(value) for name, value in outputs.items()}

    def _opened(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        if self._model is None:
            raise RuntimeError("this engine is closed")
        if self._may_be_trained and self._num_weights != len(self._model.weights):
            self._num_weights, self._forward = len(self._model.weights), None  # it got adapters
        if self._forward is None:
            from keras_bert_impl.cpu_kernels.kernel_choice import forward_function

            self._forward = forward_function(self._model, self._may_be_trained)
        return self._forward

    def read_weights_anew(self) -> None:
        """From now on the weights of each call count: the model may be trained."""
        with self._lock:
            if not self._may_be_trained:
                self._may_be_trained, self._forward = True, None

    def identity(self) -> None:
        """Nothing beyond the weights."""

    def close(self) -> None:
        """See `Engine.close`."""
        with self._lock:
            self._model = self._forward = None
