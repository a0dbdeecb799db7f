"""The losses of a student, beside the formulas of the papers written in NumPy."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from keras_bert_impl.layers import kernels
from keras_bert_impl.models.adapters import AdapterConfig, add_adapters
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.inner_outputs import RecordedStates, hidden_states
from keras_bert_impl.training.distillation import (
    HIDDEN_STATES,
    RELATIONS,
    DistillationObjective,
    InnerLessons,
)
from keras_bert_impl.training.objectives import (
    ClassificationObjective,
    MultiLabelObjective,
    RegressionObjective,
    SpanObjective,
    TagObjective,
)
from keras_bert_impl.training.vector_step import VectorObjective
from tests.support.model_folders import tiny_config
from tests.support.tiny_bert import one_matrix, scatter_weights

DRAWS = np.random.default_rng(0)
MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
T = 2.0


def kl(student, teacher, temperature=T):
    """Hinton et al.: T² · Σ p_teacher · (log p_teacher - log p_student)."""
    p = softmax(teacher / temperature, axis=-1)
    logs = [log_softmax(x / temperature, axis=-1) for x in (teacher, student)]
    return temperature**2 * np.sum(p * (logs[0] - logs[1]), axis=-1)


def of_labels(student, teacher):
    p, q = expit(teacher / T), expit(student / T)
    found = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return T**2 * found.mean(axis=-1)


def of_spans(student, teacher):
    return np.array(
        [
            kl(one[:count], other[:count])
            for one, other, count in zip(student, teacher, MASK.sum(axis=1), strict=True)
        ]
    )


def of_tags(student, teacher):
    return (kl(student, teacher) * MASK).sum(axis=1) / MASK.sum(axis=1)


def of_vectors(student, teacher):
    return ((student - teacher) ** 2).sum(axis=-1) / (teacher**2).sum(axis=-1)


KINDS = {
    "classes": (ClassificationObjective(), "logits", (3, 5), kl),
    "labels": (MultiLabelObjective(), "logits", (3, 5), of_labels),
    "numbers": (RegressionObjective(3.0), "logits", (3, 1), lambda s, t: ((s - t) / 3)[:, 0] ** 2),
    "tags": (TagObjective(), "logits", (3, 4, 5), of_tags),
    "spans": (SpanObjective(), "start_logits", (3, 4), of_spans),
    "vectors": (VectorObjective(None), "embedding", (3, 6), of_vectors),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_student_is_as_far_from_its_teacher_as_the_papers_say(kind):
    own, name, shape, formula = KINDS[kind]
    student, teacher = DRAWS.normal(size=[2, *shape]).astype("float32") * 3
    weights = np.array([1, 1, 0], np.float32)
    batch = {f"teacher/{name}": teacher, "input_mask": MASK, "example_weights": weights}
    objective = DistillationObjective(own, [name], T)
    loss, _ = objective.loss({name: student}, batch, objective.normalizers(batch))
    expected = formula(student.astype(np.float64), teacher.astype(np.float64))
    assert float(loss) == pytest.approx(expected[:2].mean(), rel=1e-4)


def test_a_row_without_a_label_has_the_teachers_loss_alone():
    student, teacher = DRAWS.normal(size=[2, 3, 5]).astype("float32")
    batch = {
        "teacher/logits": teacher,
        "label_ids": np.array([1, 4, 0]),
        "labelled": np.array([1, 0, 1], np.float32),
    }
    objective = DistillationObjective(ClassificationObjective(), ["logits"], T, label_weight=0.25)
    loss, _ = objective.loss({"logits": student}, batch, objective.normalizers(batch))
    hard = -log_softmax(student, axis=-1)[[0, 2], [1, 0]].sum() / 3
    soft = (kl(student, teacher) * [0.75, 1, 0.75]).sum() / 3
    assert float(loss) == pytest.approx(soft + 0.25 * hard, rel=1e-5)


def test_weights_of_classes_count_rows_with_labels_alone():
    student, teacher = DRAWS.normal(size=[2, 3, 2]).astype("float32")
    batch = {
        "teacher/logits": teacher,
        "label_ids": np.array([1, 0, 0]),
        "labelled": np.array([1, 1, 0], np.float32),
    }
    own = ClassificationObjective([1.0, 3.0])
    objective = DistillationObjective(own, ["logits"], T, label_weight=0.25)
    hard = -log_softmax(student, axis=-1)[[0, 1], [1, 0]] @ [3, 1] / 4
    for labelled in (1, 0):  # of the first two rows: a batch may have no label
        batch["labelled"] *= labelled
        loss, _ = objective.loss({"logits": student}, batch, objective.normalizers(batch))
        soft = kl(student, teacher) * (1 - 0.25 * batch["labelled"])
        expected = soft.sum() / 3 + 0.25 * hard * labelled * 2 / 3
        assert float(loss) == pytest.approx(expected, rel=1e-5)


def inner(what):
    """Inputs, the loss of each row, and the encoders of a student of two layers and its teacher."""
    undropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    teacher = BertEncoder(tiny_config(num_hidden_layers=3), return_all_layers=True)
    student = BertEmbedder(tiny_config(num_hidden_layers=2, **undropped))
    add_adapters(student, AdapterConfig(lora_rank=2))
    for model in (student, teacher):
        scatter_weights(model)
    ids = DRAWS.integers(5, 12, MASK.shape) * MASK
    inputs = {"input_ids": ids, "input_mask": MASK, "segment_ids": 0 * ids}
    recorded = RecordedStates(student.kernels)
    with kernels.use(recorded):
        student(inputs, training=True)
    loss = InnerLessons(teacher, what, [0, 2]).loss(student, recorded, inputs)
    return inputs, np.array(loss), student.encoder, teacher


def test_hidden_states_are_those_of_the_layers_that_the_students_were_cut_from():
    inputs, found, student, teacher = inner(HIDDEN_STATES)
    own, other = (hidden_states(encoder, inputs) for encoder in (student, teacher))
    errors = [(np.array(own[at]) - np.array(other[of])) ** 2 for at, of in ((1, 1), (2, 3))]
    expected = (np.mean(errors, axis=(0, -1)) * MASK).sum(axis=1) / MASK.sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_relations_are_those_of_the_last_layers_queries_keys_and_values():
    inputs, found, student, teacher = inner(RELATIONS)
    sides = []
    for encoder in (student, teacher):
        before = np.array(hidden_states(encoder, inputs)[-2])
        parts = encoder.blocks[-1].attention.projections
        matrices = [np.array(one_matrix(part.parts()[0])) for part in parts]
        biases = [np.array(part.bias) for part in parts]
        sides.append([before @ x + bias for x, bias in zip(matrices, biases, strict=True)])
    heads, size = 2, 8
    for row, count in enumerate(MASK.sum(axis=1)):
        of_relations = []
        for own, other in zip(*sides, strict=True):
            for head in range(heads):
                at = slice(head * size, (head + 1) * size)
                (s, t) = (
                    x[row, :count, at] @ x[row, :count, at].T / size**0.5 for x in (own, other)
                )
                of_relations.append(kl(s, t, 1.0).mean())
        assert found[row] == pytest.approx(np.mean(of_relations), rel=1e-3)
