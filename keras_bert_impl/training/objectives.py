"""Losses that add up over the parts of a batch: the contract, and those of the models here."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch

Arrays = Mapping[str, Any]
Figures = tuple[Any, dict[str, Any]]
"""The loss (float32 scalar), and the metrics (float32 scalars by name)."""


class Objective(ABC):
    """A loss that may be computed in parts; here one that is a mean over examples.

    A batch is split over replicas and micro-batches. The loss of a part is a *sum* over its rows,
    already divided by the counts of the *whole* batch. So the parts add up to the loss of the
    batch, however it is split.

    Attributes:
        input_names: the features that the model reads.
        couples_rows: whether rows are compared with one another, so that the loss is no such sum;
            see `training.vector_step`.

    Example:
        >>> RegressionObjective().normalizers({"label_ids": np.array([1, 0])})
        {'examples': np.float32(2.0)}
    """

    input_names: tuple[str, ...] = ENCODER_INPUTS
    couples_rows = False

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        """Counts what the sums are divided by, on the whole batch: float32 scalars by name.

        They are additive: those of two batches together are the sums of the two. Evaluation adds
        them over a whole set.
        """
        return {"examples": count_examples(batch)}

    def outputs(self, model: Any, inputs: Arrays) -> Any:
        """Runs the model on a part, with dropout; one that needs more of it computes that here."""
        return model(inputs, training=True)

    @abstractmethod
    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        """Gives a part's share of the loss and of each metric.

        The batch is the part's, with `example_weights` float32 [rows]; the normalizers are those of
        the whole batch (or set).
        """

    def without_padding(self) -> "Objective":
        """The loss of outputs that are kept for real tokens only."""
        return self


def count_examples(batch: Batch) -> np.float32:
    """Counts the real examples of a batch, whose weights are not 0: float32 scalar.

    Weights other than 0 are 1 in the mean of all batches. Divided by their sum, those of one batch
    would be made as heavy as those of another, though they were meant to count less.

    Example:
        >>> float(count_examples({"x": np.zeros([3, 2]), "example_weights": np.array([1, 1, 0])}))
        2.0
    """
    weights = batch.get(EXAMPLE_WEIGHTS)
    if weights is None:
        return np.float32(len(next(iter(batch.values()))))
    return np.float32(np.count_nonzero(weights))


def weights_of(batch: Mapping[str, Any], rows_like: Any) -> Any:
    """The examples' weights float32 [rows], or ones where the batch has none."""
    weights = batch.get(EXAMPLE_WEIGHTS)
    if weights is None:
        return ops.ones(ops.shape(rows_like)[:1], "float32")
    return ops.cast(weights, "float32")


class ClassificationObjective(Objective):
    """Mean cross entropy over the examples; labels are `label_ids` int32 [batch].

    The `class_weights` count as in PyTorch's `CrossEntropyLoss(weight=...)`: the sum is divided by
    the weights of the whole batch. The accuracy never knows weights.

    Example:
        >>> objective = ClassificationObjective()
        >>> batch = {"label_ids": np.array([1, 0])}
        >>> outputs = {"logits": ops.convert_to_tensor([[0.0, 9.0], [0.0, 9.0]])}
        >>> _, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(metrics["accuracy"])
        0.5
        >>> float(ClassificationObjective([1.0, 3.0]).normalizers(batch)["class_weights"])
        4.0
    """

    def __init__(self, class_weights: Sequence[float] | None = None) -> None:
        self._weights = None if class_weights is None else np.asarray(class_weights, np.float32)

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        counts = super().normalizers(batch)
        if self._weights is None:
            return counts
        weights = self._weights[np.reshape(batch["label_ids"], -1)]
        weights = weights * (batch.get(EXAMPLE_WEIGHTS, np.float32(1)) > 0)
        return {**counts, "class_weights": np.float32(np.sum(weights))}

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        labels = ops.reshape(ops.cast(batch["label_ids"], "int32"), [-1])  # [rows]
        losses, right = _cross_entropies(outputs["logits"], labels)  # of [rows, classes]
        examples = weights_of(batch, labels)  # [rows]
        weights = examples / normalizers["examples"]
        accuracy = ops.sum(right * ops.sign(weights)) / normalizers["examples"]
        if self._weights is not None:
            by_class = ops.take(ops.convert_to_tensor(self._weights), labels)
            weights = examples * by_class / normalizers["class_weights"]
        return ops.sum(losses * weights), {"accuracy": accuracy}


class MultiLabelObjective(Objective):
    """Mean binary cross entropy over labels and examples, each label a question of its own.

    Targets are `label_ids` int32 [batch, labels], 1 where the label holds. The accuracy is the
    share of single decisions (at a probability of a half) that are right. The `positive_weights`
    say how much a label that holds counts, as `pos_weight` of PyTorch's `BCEWithLogitsLoss`.

    Example:
        >>> objective = MultiLabelObjective()
        >>> batch = {"label_ids": np.array([[1, 0]])}
        >>> outputs = {"logits": ops.convert_to_tensor([[9.0, 9.0]])}
        >>> _, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(metrics["accuracy"])
        0.5
    """

    def __init__(self, positive_weights: Sequence[float] | None = None) -> None:
        given = positive_weights is not None
        self._weights = np.asarray(positive_weights, np.float32) if given else np.float32(1)

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        logits = ops.cast(outputs["logits"], "float32")  # [rows, labels]
        targets = ops.cast(batch["label_ids"], "float32")  # [rows, labels]
        examples = weights_of(batch, targets) / normalizers["examples"]  # [rows]
        # -log sigmoid(x) is softplus(-x), which no large number overflows.
        losses = self._weights * targets * ops.softplus(-logits)
        losses = ops.mean(losses + (1.0 - targets) * ops.softplus(logits), axis=-1)  # [rows]
        right = ops.equal(ops.cast(logits >= 0, "float32"), targets)
        accuracy = ops.mean(ops.cast(right, "float32"), axis=-1)  # [rows]
        accuracy = ops.sum(accuracy * ops.sign(examples)) / normalizers["examples"]
        return ops.sum(losses * examples), {"accuracy": accuracy}


class RegressionObjective(Objective):
    """Mean squared error over the examples; the targets are `label_ids` float32 [batch].

    Where the head learns in units of the training labels' `deviation` (see `LabelUnits`), the loss
    is in the labels' own units, its gradient that of the labels in the others.

    Example:
        >>> objective = RegressionObjective()
        >>> batch = {"label_ids": np.array([1.0, 3.0], np.float32)}
        >>> outputs = {"logits": ops.convert_to_tensor([[1.0], [1.0]])}
        >>> loss, _ = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(loss)
        2.0
    """

    def __init__(self, deviation: float = 1.0) -> None:
        self.deviation = deviation

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        predictions = ops.reshape(ops.cast(outputs["logits"], "float32"), [-1])  # [rows]
        targets = ops.reshape(ops.cast(batch["label_ids"], "float32"), [-1])  # [rows]
        weights = weights_of(batch, targets) / normalizers["examples"]
        if self.deviation != 1.0:
            # The same numbers with the gradient of standard ones: divided by the deviation once for
            # the error and once for the output. One after the other: a square may overflow.
            still = ops.stop_gradient(predictions)
            learned = (predictions - still) / self.deviation / self.deviation
            predictions = still + learned
        error = ops.sum(ops.square(predictions - targets) * weights)
        return error, {"mean_squared_error": error}


class SpanObjective(Objective):
    """Mean of the cross entropies of an answer's first and last position, over the examples.

    Labels are `start_positions` and `end_positions` int32 [batch]; a row without the answer has the
    positions 0, those of [CLS]. With `padding_competes` the softmax includes padding, as in the
    original (`run_squad.model_fn` of google-research/bert), where all rows have one length; where
    batches are trimmed, a row's loss would then depend on the rows beside it.

    Example:
        >>> objective = SpanObjective()
        >>> batch = {"start_positions": np.array([1]), "end_positions": np.array([1])}
        >>> logits = ops.convert_to_tensor([[0.0, 9.0]])
        >>> outputs = {"start_logits": logits, "end_logits": logits}
        >>> _, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> float(metrics["exact_match"])
        1.0
    """

    def __init__(self, *, padding_competes: bool = True) -> None:
        self._padding_competes = padding_competes

    def without_padding(self) -> Objective:
        return SpanObjective(padding_competes=False)

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        found = []
        for name in ("start", "end"):
            logits = ops.cast(outputs[f"{name}_logits"], "float32")  # [rows, length]
            if not self._padding_competes:
                is_token = ops.cast(batch["input_mask"], "bool")
                logits = ops.where(is_token, logits, IMPOSSIBLE)
            labels = ops.reshape(batch[f"{name}_positions"], [-1])  # [rows]
            found.append(_cross_entropies(logits, labels))
        (of_start, start_right), (of_end, end_right) = found
        weights = weights_of(batch, of_start) / normalizers["examples"]
        loss = ops.sum((of_start + of_end) / 2.0 * weights)
        return loss, {"exact_match": ops.sum(start_right * end_right * weights)}


class TagObjective(Objective):
    """Mean cross entropy over the tokens that have a tag, in whatever rows.

    Tags are `tag_ids` int32 [batch, length]: 0 where there is none (a word's further tokens,
    padding), else the number of the tag plus 1.

    Example:
        >>> objective = TagObjective()
        >>> batch = {"tag_ids": np.array([[0, 2, 0]])}
        >>> outputs = {"logits": ops.convert_to_tensor([[[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]])}
        >>> loss, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> round(float(loss), 4), float(metrics["accuracy"])
        (0.0001, 1.0)
    """

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        tagged = (batch["tag_ids"] > 0) * np.reshape(batch.get(EXAMPLE_WEIGHTS, 1.0), [-1, 1])
        return {"tags": np.float32(np.sum(tagged))}

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        tags = ops.cast(batch["tag_ids"], "int32")  # [rows, length]
        losses, right = _cross_entropies(outputs["logits"], ops.maximum(tags - 1, 0))
        # A batch may be without any tag: rows in which other windows own all words.
        count = ops.maximum(ops.cast(normalizers["tags"], "float32"), 1.0)
        share = weights_of(batch, tags) / count
        weights = ops.cast(tags > 0, "float32") * share[:, None]
        return ops.sum(losses * weights), {"accuracy": ops.sum(right * weights)}


IMPOSSIBLE = -1e9  # e to this power is 0, and no gradient of it is NaN as infinity's may be
_NO_DIVISION_BY_ZERO = 1e-5  # what the original adds to the sum of masked_lm_weights


class PretrainingObjective(Objective):
    """Masked-LM cross entropy per masked token plus next-sentence cross entropy per example.

    The masked-LM loss is divided by the number of masked tokens of the whole batch (not by the
    number of slots), as in the original (`get_masked_lm_output` of google-research/bert). Without
    `next_sentence` (the "no NSP" ablation) it is the whole loss.

    Example:
        >>> objective = PretrainingObjective()
        >>> batch = {
        ...     "masked_lm_ids": np.array([[1, 0]]), "masked_lm_weights": np.array([[1.0, 0.0]]),
        ...     "next_sentence_labels": np.array([[0]]),
        ... }
        >>> {name: float(count) for name, count in objective.normalizers(batch).items()}
        {'masked_tokens': 1.0, 'examples': 1.0}
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
        weights = batch["masked_lm_weights"]  # [batch, predictions]
        if EXAMPLE_WEIGHTS in batch:
            weights = weights * batch[EXAMPLE_WEIGHTS][:, None]
        return {"masked_tokens": np.float32(np.sum(weights)), **super().normalizers(batch)}

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        examples = weights_of(batch, batch["masked_lm_ids"])  # [rows]
        tokens = ops.cast(batch["masked_lm_weights"], "float32") * examples[:, None]
        found = {
            "masked_lm": (
                batch["masked_lm_ids"],  # [rows, predictions]; logits have the vocabulary, too
                tokens / (normalizers["masked_tokens"] + _NO_DIVISION_BY_ZERO),
            ),
            "next_sentence": (
                ops.reshape(batch["next_sentence_labels"], [-1]),
                examples / normalizers["examples"],
            ),
        }
        metrics = {}
        for name, (labels, weights) in found.items():
            losses, right = _cross_entropies(outputs[f"{name}_logits"], labels)
            metrics[f"{name}_loss"] = ops.sum(losses * weights)
            metrics[f"{name}_accuracy"] = ops.sum(right * weights)
        loss = metrics["masked_lm_loss"]
        if self._next_sentence:
            loss = loss + metrics["next_sentence_loss"]
        return loss, metrics


def _cross_entropies(logits: Any, labels: Any) -> tuple[Any, Any]:
    """The cross entropies, and 1 where the answer is right; logits [..., classes], labels [...]."""
    logits, labels = ops.cast(logits, "float32"), ops.cast(labels, "int32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)
    return losses, ops.cast(right, "float32")
