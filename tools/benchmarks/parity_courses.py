"""Two courses of fine-tuning over the same batches: one with this package, one with transformers.

Both take google's AdamW. What they have in common is arrays, so that each runs in a process of its
own: PyTorch and TensorFlow share none well.
"""

import dataclasses
import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from keras_bert_impl.training.config import TrainingConfig
    from keras_bert_impl.training.strategy import Devices
    from pipelines.fine_tuning.task import Head

Batch = Mapping[str, NDArray]

WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

BETAS, EPSILON, WEIGHT_DECAY, CLIP_NORM = (0.9, 0.999), 1e-6, 0.01, 1.0
_NOT_DECAYED = ("bias", "LayerNorm.weight")
_TAGS = "tag_ids"
_SPAN = ("start_logits", "end_logits")
_IGNORED = -100  # a label that PyTorch's loss leaves out


@dataclass(frozen=True)
class Peer:
    """A model of transformers, and what its parts are called.

    Attributes:
        model: its class.
        head: its last layer.
        labels: what it calls the labels, by their names here.
        outputs: its logits; they have the same names here.
        options: further arguments to make it with.
    """

    model: str
    head: str
    labels: Mapping[str, str]
    outputs: tuple[str, ...] = ("logits",)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_texts(cls, num_labels: int) -> "Peer":
        """A classifier of texts; one label is a regression."""
        kind = "regression" if num_labels == 1 else "single_label_classification"
        options = {"num_labels": num_labels, "problem_type": kind}
        names = {"label_ids": "labels"}
        return cls("AutoModelForSequenceClassification", "classifier", names, options=options)

    @classmethod
    def of_tags(cls, num_labels: int) -> "Peer":
        """A classifier of tokens."""
        options = {"num_labels": num_labels}
        names = {_TAGS: "labels"}
        return cls("AutoModelForTokenClassification", "classifier", names, options=options)

    @classmethod
    def of_questions(cls, num_labels: int) -> "Peer":
        """A start and an end for each question."""
        del num_labels  # always two
        names = {name: name for name in ("start_positions", "end_positions")}
        return cls("AutoModelForQuestionAnswering", "qa_outputs", names, _SPAN)

    def load(self, folder: str, **options: Any) -> Any:
        """The model with the weights of a Hugging Face directory."""
        import transformers

        make = operator.attrgetter(self.model)(transformers)
        return make.from_pretrained(folder, **self.options, **options)


@dataclass(frozen=True)
class Course:
    """What one side of the comparison did.

    Attributes:
        losses: of each step.
        logits: [decisions, choices] of the dev set afterwards, minus infinity where there is no
            choice. A decision is a text's label, a token's tag, or where an answer starts or ends.
    """

    losses: list[float]
    logits: NDArray


@dataclass(frozen=True)
class Work:
    """What both sides have in common.

    Attributes:
        batches: what to train on, a batch for each step.
        rates: the learning rate of each step.
        dev: the batches to answer afterwards.
        dev_rows: the numbers of their rows; the last batch is filled up.
        peer: the other side's model.
    """

    batches: list[Batch]
    rates: list[float]
    dev: list[Batch]
    dev_rows: list[NDArray]
    peer: Peer

    def in_reverse(self) -> "Work":
        """The same with the rows of each training batch in reverse: nothing but other rounding."""
        batches: list[Batch] = [
            {name: array[::-1].copy() for name, array in b.items()} for b in self.batches
        ]
        return dataclasses.replace(self, batches=batches)

    def course(self, losses: list[float], outputs: Iterable[Batch]) -> Course:
        """What came of it.

        Args:
            losses: of each step.
            outputs: for each batch of the dev set its logits by name, [rows or more, ...].
        """
        parts, rows = [], []
        for batch, numbers, found in zip(self.dev, self.dev_rows, outputs, strict=True):
            logits, owners = decisions(batch, found, len(numbers))
            parts.append(logits)
            rows.append(numbers[owners])
        width = max(part.shape[1] for part in parts)
        wide = [
            np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-np.inf)
            for part in parts
        ]
        order = np.argsort(np.concatenate(rows), kind="stable")
        return Course(losses, np.concatenate(wide)[order])


def decisions(batch: Batch, outputs: Batch, count: int) -> tuple[NDArray, NDArray]:
    """What a model decides in a batch.

    Args:
        batch: what it read.
        outputs: its logits by name, [rows or more, ...].
        count: how many rows are real.

    Returns:
        The logits [decisions, choices], minus infinity at padding; and the row of each decision.

    Example:
        >>> batch = {"tag_ids": np.array([[0, 2], [1, 0]])}
        >>> logits, rows = decisions(batch, {"logits": np.arange(8).reshape(2, 2, 2)}, 2)
        >>> logits.tolist(), rows.tolist()
        ([[2, 3], [4, 5]], [0, 1])
    """
    if _SPAN[0] in outputs:
        is_token = batch["input_mask"][:count] > 0
        both = [np.where(is_token, outputs[name][:count], -np.inf) for name in _SPAN]
        return np.concatenate(both), np.tile(np.arange(count), 2)
    logits = outputs["logits"][:count]
    if _TAGS not in batch:
        return logits, np.arange(count)
    tagged = np.nonzero(batch[_TAGS][:count] > 0)
    return logits[tagged], tagged[0]


def google_adamw(
    weight: Any, gradient: Any, moments: tuple[Any, Any], rate: float, decay: float
) -> None:
    """One update by google's AdamW, in place; arrays of NumPy or PyTorch.

    Args:
        weight: what is updated.
        gradient: the clipped gradient.
        moments: the means of the gradient and of its square.
        rate: the learning rate.
        decay: the weight decay of this weight.

    Example:
        >>> weight, moments = np.array([1.0]), (np.zeros(1), np.zeros(1))
        >>> google_adamw(weight, np.array([2.0]), moments, rate=0.1, decay=0.0)
        >>> round(float(weight[0]), 3)
        0.684
    """
    first, second = moments
    first *= BETAS[0]
    first += (1 - BETAS[0]) * gradient
    second *= BETAS[1]
    second += (1 - BETAS[1]) * gradient * gradient
    weight -= rate * (first / (second**0.5 + EPSILON) + decay * weight)


def our_course(work: Work, head: "Head", training: "TrainingConfig", devices: "Devices") -> Course:
    """Trains and answers with this package; changes the head's model.

    Args:
        work: what to do.
        head: the model, made in the devices' scope, and its objective.
        training: how it is trained.
        devices: where.
    """
    import tensorflow as tf

    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep

    state = TrainingState(head.model, training, devices)
    step = TrainingStep(state, head.objective, training)
    losses = []
    for number, (rate, batch) in enumerate(zip(work.rates, work.batches, strict=True)):
        (row,) = step.run(*step.prepare([batch], number, [rate]))
        losses.append(float(step.metrics(row)["loss"]))
    answer = tf.function(head.model, reduce_retracing=True)

    def answered(batch: Batch) -> Batch:
        found = answer({name: tf.constant(batch[name]) for name in head.objective.input_names})
        return {name: found[name].numpy() for name in work.peer.outputs}

    return work.course(losses, map(answered, work.dev))


def their_course(work: Work, folder: str, kernel: NDArray, bias: NDArray) -> Course:
    """The same with transformers and PyTorch.

    Args:
        work: what to do.
        folder: the Hugging Face directory of the encoder.
        kernel: the head's fresh weights, [hidden, labels].
        bias: [labels].
    """
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = work.peer.load(folder, **WITHOUT_DROPOUT)
    # [PAD]'s vector has no gradient in transformers. Where padding competes with an answer,
    # google's code trains it, and so do we.
    model.get_input_embeddings().padding_idx = None
    weights = dict(model.named_parameters())
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}
    with torch.no_grad():
        head = operator.attrgetter(work.peer.head)(model)
        head.weight.copy_(torch.from_numpy(kernel.T))
        head.bias.copy_(torch.from_numpy(bias))
    losses = []
    for rate, batch in zip(work.rates, work.batches, strict=True):
        model.zero_grad()
        loss = model(**torch_inputs(batch), **torch_labels(batch, work.peer)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), CLIP_NORM)
        with torch.no_grad():
            for name, weight in weights.items():
                decay = 0.0 if name.endswith(_NOT_DECAYED) else WEIGHT_DECAY
                google_adamw(weight, weight.grad, moments[name], rate, decay)
        losses.append(loss.item())
    model.eval()

    def answered(batch: Batch) -> Batch:
        with torch.no_grad():
            found = model(**torch_inputs(batch))
        return {name: found[name].numpy() for name in work.peer.outputs}

    return work.course(losses, map(answered, work.dev))


def compare(ours: Course, theirs: Course) -> dict[str, float]:
    """What differs between two courses.

    Example:
        >>> one = Course([0.5, 0.25], np.array([[1.0, 2.0], [3.0, 0.0]]))
        >>> other = Course([0.5, 0.5], np.array([[1.0, 2.0], [3.0, 3.5]]))
        >>> compare(one, other)
        {'largest_loss_difference': 0.25, 'largest_logit_difference': 3.5, 'same_predictions': 1,
         'predictions': 2}
    """
    losses = np.abs(np.subtract(ours.losses, theirs.losses))
    is_choice = np.isfinite(ours.logits)
    figures = {
        "largest_loss_difference": float(losses.max()),
        "largest_logit_difference": float(
            np.abs(ours.logits[is_choice] - theirs.logits[is_choice]).max()
        ),
    }
    if ours.logits.shape[1] > 1:
        same = ours.logits.argmax(axis=1) == theirs.logits.argmax(axis=1)
        figures |= {"same_predictions": int(same.sum()), "predictions": len(same)}
    return figures


def torch_inputs(batch: Batch) -> dict[str, Any]:
    """What a model of transformers reads of a batch."""
    import torch

    names = (
        ("input_ids", "input_ids"),
        ("attention_mask", "input_mask"),
        ("token_type_ids", "segment_ids"),
    )
    return {theirs: torch.from_numpy(batch[ours]).long() for theirs, ours in names}


def torch_labels(batch: Batch, peer: Peer) -> dict[str, Any]:
    """What its loss compares with."""
    import torch

    labels = {}
    for name, theirs in peer.labels.items():
        found = torch.from_numpy(batch[name])
        found = found if found.is_floating_point() else found.long()
        # A token without a tag has 0 here.
        labels[theirs] = found if name != _TAGS else torch.where(found > 0, found - 1, _IGNORED)
    return labels
