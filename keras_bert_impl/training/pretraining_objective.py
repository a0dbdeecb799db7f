"""The loss of BERT's pre-training: masked words and the next sentence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch
from keras_bert_impl.training.objective import ENCODER_INPUTS, count_examples, weights_of

_NO_DIVISION_BY_ZERO = 1e-5  # what the original adds to the sum of masked_lm_weights


class PretrainingObjective:
    """Masked-LM cross entropy per masked piece plus next-sentence cross entropy per example.

    The masked-LM loss is divided by the number of masked pieces of the whole batch (not by the
    number of slots), as in the original.

    Args:
        next_sentence: False leaves the next-sentence loss out (the "no NSP" ablation).

    Example:
        >>> objective = PretrainingObjective()
        >>> batch = {
        ...     "masked_lm_ids": np.array([[1, 0]]), "masked_lm_weights": np.array([[1.0, 0.0]]),
        ...     "next_sentence_labels": np.array([[0]]),
        ... }
        >>> {name: float(count) for name, count in objective.normalizers(batch).items()}
        {'masked_pieces': 1.0, 'examples': 1.0}
        >>> logits = {
        ...     "masked_lm_logits": ops.zeros([1, 2, 4]), "next_sentence_logits": ops.zeros([1, 2])
        ... }
        >>> _, metrics = objective.loss(logits, batch, objective.normalizers(batch))
        >>> round(float(metrics["masked_lm_loss"]), 3)
        1.386
    """

    input_names = (*ENCODER_INPUTS, "masked_lm_positions")

    def __init__(self, next_sentence: bool = True) -> None:
        self._next_sentence = next_sentence

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        """Counts masked pieces and examples; see `Objective.normalizers`."""
        weights = batch["masked_lm_weights"]  # [batch, predictions]
        if EXAMPLE_WEIGHTS in batch:
            weights = weights * batch[EXAMPLE_WEIGHTS][:, None]
        return {
            "masked_pieces": np.float32(np.sum(weights)),
            "examples": count_examples(batch),
        }

    def loss(
        self,
        outputs: Any,
        batch: Mapping[str, Any],
        normalizers: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Gives the part's share of the loss, both losses and both accuracies."""
        examples = weights_of(batch, batch["masked_lm_ids"])  # [rows]
        pieces = ops.cast(batch["masked_lm_weights"], "float32") * examples[:, None]
        masked_lm = _cross_entropy(
            outputs["masked_lm_logits"],  # [rows, predictions, vocabulary]
            batch["masked_lm_ids"],
            pieces / (normalizers["masked_pieces"] + _NO_DIVISION_BY_ZERO),
        )
        next_sentence = _cross_entropy(
            outputs["next_sentence_logits"],  # [rows, 2]
            ops.reshape(batch["next_sentence_labels"], [-1]),
            examples / normalizers["examples"],
        )
        loss = masked_lm[0] + next_sentence[0] if self._next_sentence else masked_lm[0]
        return loss, {
            "masked_lm_loss": masked_lm[0],
            "next_sentence_loss": next_sentence[0],
            "masked_lm_accuracy": masked_lm[1],
            "next_sentence_accuracy": next_sentence[1],
        }


def _cross_entropy(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Weighted sums of the cross entropy and of the right answers.

    Args:
        logits: [..., classes].
        labels: int [...].
        weights: float32 [...].

    Returns:
        Two float32 scalars.
    """
    logits = ops.cast(logits, "float32")
    labels = ops.cast(labels, "int32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    right = ops.cast(ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels), "float32")
    return ops.sum(losses * weights), ops.sum(right * weights)
