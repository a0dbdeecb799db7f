"""What a model is trained for: the contract between the training step and a task."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch

ENCODER_INPUTS: tuple[str, ...] = ("input_ids", "input_mask", "segment_ids")
"""The features every BERT model reads: int32 [batch, length]."""


class Objective(Protocol):
    """A loss that may be computed in parts.

    A big batch is cut over replicas and micro-batches. Each part's loss is a *sum* over its rows,
    already divided by what the *whole* batch counts, so the parts simply add up to the loss of the
    big batch: one mathematics for every way of cutting it.

    Attributes:
        input_names: the features that the model reads.
    """

    input_names: tuple[str, ...]

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        """Counts what the sums are divided by, on the whole batch.

        They are additive: those of two batches together are the sums of the two. Evaluation adds
        them over a whole set.

        Args:
            batch: NumPy arrays [batch, ...].

        Returns:
            float32 scalars by name.
        """
        ...

    def loss(
        self,
        outputs: Any,
        batch: Mapping[str, Any],
        normalizers: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Gives a part's share of the loss and of each metric.

        Args:
            outputs: what the model gave for this part.
            batch: this part's features as tensors; with `example_weights` float32 [rows].
            normalizers: those of the whole batch (or set).

        Returns:
            The loss's share (float32 scalar), and the metrics' shares (float32 scalars by name).
        """
        ...


class ExampleObjective:
    """What objectives share that are a mean over examples.

    Example:
        >>> ExampleObjective().normalizers({"label_ids": np.array([1, 0])})
        {'examples': np.float32(2.0)}
    """

    input_names: tuple[str, ...] = ENCODER_INPUTS

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        """Counts the examples; see `Objective.normalizers`."""
        return {"examples": count_examples(batch)}


def count_examples(batch: Batch) -> np.float32:
    """Counts the real examples of a batch: float32 scalar.

    Example:
        >>> float(count_examples({"x": np.zeros([3, 2]), "example_weights": np.array([1, 1, 0])}))
        2.0
    """
    weights = batch.get(EXAMPLE_WEIGHTS)
    if weights is None:
        return np.float32(len(next(iter(batch.values()))))
    return np.float32(np.sum(weights))


def weights_of(batch: Mapping[str, Any], rows_like: Any) -> Any:
    """The examples' weights float32 [rows], or ones where the batch has none."""
    from keras import ops

    weights = batch.get(EXAMPLE_WEIGHTS)
    if weights is None:
        return ops.ones(ops.shape(rows_like)[:1], "float32")
    return ops.cast(weights, "float32")
