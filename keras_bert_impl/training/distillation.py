"""What a small model learns from a large one: its outputs, and what it computes inside.

Softened classes: Hinton et al., 2015; hidden states: TinyBERT; relations: MiniLM, version 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.encoder_block import attention_mask
from keras_bert_impl.models.inner_outputs import RecordedStates
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch
from keras_bert_impl.training.objectives import (
    IMPOSSIBLE,
    Arrays,
    Figures,
    MultiLabelObjective,
    Objective,
    RegressionObjective,
    SpanObjective,
    count_examples,
    weights_of,
)

OUTPUTS, HIDDEN_STATES, RELATIONS = "outputs", "hidden_states", "relations"
TEACHER, LABELLED = "teacher/", "labelled"
"""Features of rows: TEACHER and an output's name, and whether there is a label, float32 [rows]."""

_INSIDE, _OWN = "inside", "own/"


def divergence(student: Any, teacher: Any, temperature: float = 1.0) -> Any:
    """KL(teacher, student) of softmaxes at a temperature, times its square: [..., n] -> [...]."""
    log_teacher, log_student = (
        ops.log_softmax(ops.cast(logits, "float32") / temperature, axis=-1)
        for logits in (teacher, student)
    )
    found = ops.sum(ops.exp(log_teacher) * (log_teacher - log_student), axis=-1)
    return found * temperature**2


def relation_divergence(student: Any, teacher: Any, heads: int, input_mask: Any) -> Any:
    """How the similarities among tokens differ: [batch, length, width] each -> [batch, length].

    The vectors of each head are compared with one another, softmax(V Vᵀ / √size); the mean of the
    heads' divergences of each token.
    """
    hidden = attention_mask(input_mask, causal=False)

    def scores(vectors: Any) -> Any:
        batch, length, width = ops.shape(vectors)
        split = ops.reshape(ops.cast(vectors, "float32"), [batch, length, heads, width // heads])
        split = ops.transpose(split, [0, 2, 1, 3])  # [batch, heads, length, size]
        product = ops.matmul(split, ops.transpose(split, [0, 1, 3, 2]))
        return product * (width // heads) ** -0.5 + hidden

    return ops.mean(divergence(scores(student), scores(teacher)), axis=1)


def token_mean(values: Any, input_mask: Any, rows: Any) -> Any:
    """The mean over the real tokens of each row, of all its choices: [..., length] -> [rows]."""
    values = ops.reshape(values, [rows, -1])
    mask = ops.reshape(ops.cast(input_mask, "float32"), [rows, -1])
    return ops.sum(values * mask, axis=-1) / ops.maximum(ops.sum(mask, axis=-1), 1.0)


@dataclass(frozen=True)
class InnerLessons:
    """What is learned of the inside of a teacher, an encoder that gives all its layers.

    `HIDDEN_STATES` are compared by the mean squared difference of each layer of the student and the
    one that it was cut from, `RELATIONS` are those of the queries, keys and values of both last
    layers.
    """

    teacher: Any
    what: str
    layers: Sequence[int]  # of the teacher, those that the student was cut from

    def loss(self, model: Any, inside: RecordedStates, inputs: Arrays) -> Any:
        """The loss of each row, float32 [rows]."""
        rows = ops.shape(inputs[ENCODER_INPUTS[0]])[0]
        flat = {
            name: ops.reshape(inputs[name], [-1, ops.shape(inputs[name])[-1]])
            for name in ENCODER_INPUTS
        }
        with kernels.use(model.kernels):
            taught = self.teacher(flat, training=False)
        layers, mask = taught["all_encoder_layers"], flat["input_mask"]
        if self.what == HIDDEN_STATES:
            found = [
                ops.mean(ops.square(_float32(own) - _float32(layers[number])), axis=-1)
                for own, number in zip(inside.outputs, self.layers, strict=True)
            ]
        else:
            count = len(self.teacher.blocks)
            before = layers[count - 2] if count > 1 else taught["embedding_output"]
            own = _projections(model.encoder.blocks[-1], inside.inputs[-1])
            given = _projections(self.teacher.blocks[-1], before)
            heads = model.config.num_attention_heads
            found = [
                relation_divergence(student, teacher, heads, mask)
                for student, teacher in zip(own, given, strict=True)
            ]
        return token_mean(sum(found) / len(found), mask, rows)


def _of_labelled(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {**batch, EXAMPLE_WEIGHTS: batch.get(EXAMPLE_WEIGHTS, 1.0) * batch[LABELLED]}


def _float32(values: Any) -> Any:
    return ops.cast(values, "float32")


def _projections(block: Any, hidden: Any) -> list[Any]:
    """The queries, keys and values of a block's input."""
    parts = [kernels.of_type("float32", *one.parts()) for one in block.attention.projections]
    return [kernels.product(_float32(hidden), kernel) + bias for kernel, bias in parts]


class DistillationObjective(Objective):
    """The mean over the rows of what the outputs differ, and of the labels' own loss.

    Rows have the teacher's outputs (`TEACHER`), and `LABELLED`. Logits of classes differ by
    their `divergence` (of spans: over positions), several labels each by that of yes and no,
    numbers by their squared difference in units of the labels' deviation, vectors by theirs in
    units of the teacher's length. Of rows with labels, the labels' loss has the share
    `label_weight`.

    Example:
        >>> from keras_bert_impl.training.objectives import ClassificationObjective
        >>> objective = DistillationObjective(ClassificationObjective(), ["logits"], 2.0)
        >>> logits = np.float32([[0.0, 2.0]])
        >>> batch = {"teacher/logits": logits, "label_ids": np.array([1])}
        >>> float(objective.loss({"logits": logits}, batch, objective.normalizers(batch))[0])
        0.0
    """

    def __init__(
        self,
        own: Objective,
        names: Sequence[str],
        temperature: float = 1.0,
        label_weight: float = 0.0,
        inner: InnerLessons | None = None,
    ) -> None:
        self._own, self._names, self._temperature = own, tuple(names), temperature
        self._label_weight, self._inner = label_weight, inner
        self.input_names = own.input_names

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        counts = super().normalizers(batch)
        if self._label_weight:
            labelled = _of_labelled(batch)
            own = self._own.normalizers(labelled)
            counts[LABELLED] = count_examples(labelled)
            counts |= {_OWN + name: count for name, count in own.items()}
        return counts

    def outputs(self, model: Any, inputs: Arrays) -> Any:
        if self._inner is None:
            return super().outputs(model, inputs)
        inside: Any = RecordedStates(model.kernels)
        with kernels.use(inside):
            outputs = super().outputs(model, inputs)
        return {**outputs, _INSIDE: self._inner.loss(model, inside, inputs)}

    def loss(self, outputs: Any, batch: Arrays, normalizers: Arrays) -> Figures:
        found = [self._difference(name, outputs[name], batch) for name in self._names]
        differences = sum(found) / len(found)  # [rows]
        weights = weights_of(batch, differences)
        shares, metrics = weights / normalizers["examples"], dict[str, Any]()
        loss = metrics["teacher_loss"] = ops.sum(differences * shares)
        if self._label_weight:
            own = {
                name.removeprefix(_OWN): ops.maximum(count, 1e-12)  # a batch may have no label
                for name, count in normalizers.items()
                if name.startswith(_OWN)
            }
            hard, _ = self._own.loss(outputs, _of_labelled(batch), own)  # a mean of labelled rows
            hard = metrics["label_loss"] = hard * normalizers[LABELLED] / normalizers["examples"]
            replaced = ops.sum(differences * shares * batch[LABELLED])
            loss = loss + (hard - replaced) * self._label_weight
        if self._inner is not None:
            metrics["inner_loss"] = ops.sum(outputs[_INSIDE] * shares)
            loss = loss + metrics["inner_loss"]
        return loss, metrics

    def _difference(self, name: str, student: Any, batch: Mapping[str, Any]) -> Any:
        """By how much an output differs from the teacher's: float32 [rows]."""
        student, teacher = _float32(student), _float32(batch[TEACHER + name])
        own, rows = self._own, ops.shape(student)[0]
        if own.couples_rows:  # vectors
            error = ops.sum(ops.square(student - teacher), axis=-1)
            return error / ops.maximum(ops.sum(ops.square(teacher), axis=-1), 1e-12)
        if isinstance(own, RegressionObjective):
            return ops.mean(ops.square((student - teacher) / own.deviation), axis=-1)
        if isinstance(own, MultiLabelObjective):
            student, teacher = (
                ops.stack([logits, ops.zeros_like(logits)], axis=-1)
                for logits in (student, teacher)
            )
            return ops.mean(divergence(student, teacher, self._temperature), axis=-1)
        if isinstance(own, SpanObjective):
            is_token = ops.cast(batch["input_mask"], "bool")
            student, teacher = (
                ops.where(is_token, logits, IMPOSSIBLE) for logits in (student, teacher)
            )
        found = divergence(student, teacher, self._temperature)  # [rows], or [rows, length] of tags
        return found if len(found.shape) == 1 else token_mean(found, batch["input_mask"], rows)
