"""Each objective beside the same sums in NumPy, and cut into parts that add up."""

import numpy as np
import pytest

from keras_bert_impl.training.objectives import (
    ClassificationObjective,
    MultiLabelObjective,
    PretrainingObjective,
    RegressionObjective,
    SpanObjective,
    TagObjective,
)

DRAWS = np.random.default_rng(0)


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def pretraining(rows=6, predictions=4, vocabulary=9):
    outputs = {
        "masked_lm_logits": DRAWS.normal(size=[rows, predictions, vocabulary]).astype("float32"),
        "next_sentence_logits": DRAWS.normal(size=[rows, 2]).astype("float32"),
    }
    batch = {
        "masked_lm_ids": DRAWS.integers(0, vocabulary, [rows, predictions]).astype("int32"),
        "masked_lm_weights": DRAWS.integers(0, 2, [rows, predictions]).astype("float32"),
        "next_sentence_labels": DRAWS.integers(0, 2, [rows, 1]).astype("int32"),
    }
    return outputs, batch


def measured(objective, outputs, batch, normalizers=None):
    normalizers = normalizers or objective.normalizers(batch)
    loss, metrics = objective.loss(outputs, batch, normalizers)
    return {"loss": float(loss), **{name: float(value) for name, value in metrics.items()}}


def part(arrays, first, last):
    return {name: array[first:last] for name, array in arrays.items()}


def test_pretraining_is_the_sum_of_two_cross_entropies():
    outputs, batch = pretraining()
    weights, ids = batch["masked_lm_weights"], batch["masked_lm_ids"]
    log_shares = log_softmax(outputs["masked_lm_logits"])
    losses = -np.take_along_axis(log_shares, ids[..., None], -1)[..., 0]
    masked_lm = (losses * weights).sum() / (weights.sum() + 1e-5)
    labels = batch["next_sentence_labels"][:, 0]
    next_sentence = -log_softmax(outputs["next_sentence_logits"])[np.arange(6), labels].mean()
    figures = measured(PretrainingObjective(), outputs, batch)
    assert figures["masked_lm_loss"] == pytest.approx(masked_lm, rel=1e-5)
    assert figures["next_sentence_loss"] == pytest.approx(next_sentence, rel=1e-5)
    assert figures["loss"] == pytest.approx(masked_lm + next_sentence, rel=1e-5)
    right = outputs["masked_lm_logits"].argmax(-1) == ids
    assert figures["masked_lm_accuracy"] == pytest.approx((right * weights).sum() / weights.sum())


def test_the_next_sentence_loss_may_be_left_out_of_the_sum_but_is_still_measured():
    outputs, batch = pretraining()
    figures = measured(PretrainingObjective(next_sentence=False), outputs, batch)
    assert figures["loss"] == figures["masked_lm_loss"]
    assert figures["next_sentence_loss"] > 0


def test_a_batch_without_masked_tokens_has_no_masked_lm_loss():
    outputs, batch = pretraining()
    batch["masked_lm_weights"][:] = 0
    assert measured(PretrainingObjective(), outputs, batch)["masked_lm_loss"] == 0.0


def test_padding_rows_count_nowhere():
    outputs, batch = pretraining()
    real = {**batch, "example_weights": np.array([1, 1, 1, 1, 0, 0], np.float32)}
    whole = measured(PretrainingObjective(), outputs, real)
    fewer = measured(PretrainingObjective(), part(outputs, 0, 4), part(batch, 0, 4))
    assert whole == pytest.approx(fewer, rel=1e-5)


@pytest.mark.parametrize(
    ("objective", "labels"),
    [
        (ClassificationObjective(), DRAWS.integers(0, 3, [6]).astype("int32")),
        (ClassificationObjective([1, 2, 7]), DRAWS.integers(0, 3, [6]).astype("int32")),
        (MultiLabelObjective([1, 2, 7]), DRAWS.integers(0, 2, [6, 3]).astype("int32")),
        (RegressionObjective(), DRAWS.normal(size=[6]).astype("float32")),
        (PretrainingObjective(), None),
    ],
)
def test_the_parts_of_a_batch_add_up_to_the_whole(objective, labels):
    outputs, batch = pretraining()
    if labels is not None:
        classes = 1 if labels.dtype == np.float32 else 3
        outputs = {"logits": DRAWS.normal(size=[6, classes]).astype("float32")}
        batch = {"label_ids": labels}
    whole, normalizers = measured(objective, outputs, batch), objective.normalizers(batch)
    parts = [
        measured(objective, part(outputs, *at), part(batch, *at), normalizers)
        for at in ((0, 1), (1, 4), (4, 6))
    ]
    added = {name: sum(figures[name] for figures in parts) for name in whole}
    assert added == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("of_class", [None, [1.0, 3.0]])
def test_a_row_s_weight_is_one_of_the_loss_and_not_of_the_accuracy(of_class):
    logits, labels = DRAWS.normal(size=[4, 2]).astype("float32"), np.array([0, 1, 1, 0])
    weights = np.array([0.25, 1.5, 0.5, 0.0], np.float32)
    batch = {"label_ids": labels.astype("int32"), "example_weights": weights}
    figures = measured(ClassificationObjective(of_class), {"logits": logits}, batch)
    each = np.array(of_class or [1.0, 1.0])[labels]
    losses = -log_softmax(logits)[np.arange(4), labels] * each * weights
    assert figures["loss"] == pytest.approx(losses.sum() / each[:3].sum(), rel=1e-5)
    assert figures["accuracy"] == pytest.approx((logits.argmax(-1) == labels)[:3].mean())


@pytest.mark.parametrize("deviation", [1e-15, 1000.0])
def test_an_error_is_told_in_the_labels_units_whatever_it_is_learned_in(deviation):
    outputs = {"logits": np.float32(deviation) * DRAWS.normal(size=[6, 1]).astype("float32")}
    labels = np.float32(deviation) * DRAWS.normal(size=[6]).astype("float32")
    batch = {"label_ids": labels, "example_weights": np.array([1, 1, 1, 1, 1, 0], np.float32)}
    figures = measured(RegressionObjective(deviation), outputs, batch)
    assert figures == measured(RegressionObjective(), outputs, batch)
    error = np.mean(np.square(outputs["logits"][:5, 0].astype(np.float64) - labels[:5]))
    assert figures["loss"] == figures["mean_squared_error"] == pytest.approx(error, rel=1e-5)


def spans(rows=6, length=7):
    outputs = {
        f"{name}_logits": DRAWS.normal(size=[rows, length]).astype("float32")
        for name in ("start", "end")
    }
    batch = {
        f"{name}_positions": DRAWS.integers(0, length, [rows]).astype("int32")
        for name in ("start", "end")
    }
    return outputs, batch


def test_spans_are_the_mean_of_two_cross_entropies():
    outputs, batch = spans()
    expected, found = 0.0, np.ones([6], bool)
    for name in ("start", "end"):
        logits, labels = outputs[f"{name}_logits"], batch[f"{name}_positions"]
        expected -= log_softmax(logits)[np.arange(6), labels].mean() / 2
        found &= logits.argmax(-1) == labels
    figures = measured(SpanObjective(), outputs, batch)
    assert figures["loss"] == pytest.approx(expected, rel=1e-5)
    assert figures["exact_match"] == pytest.approx(found.mean())


def test_parts_of_spans_add_up_and_padding_examples_count_nothing():
    outputs, batch = spans()
    batch["example_weights"] = np.array([1, 1, 1, 1, 1, 0], np.float32)
    objective = SpanObjective()
    whole = measured(objective, outputs, batch)
    counts = objective.normalizers(batch)
    parts = [
        measured(objective, part(outputs, *ends), part(batch, *ends), counts)
        for ends in ((0, 2), (2, 6))
    ]
    assert sum(figures["loss"] for figures in parts) == pytest.approx(whole["loss"], rel=1e-5)
    real = measured(objective, part(outputs, 0, 5), part(batch, 0, 5))
    assert real["loss"] == pytest.approx(whole["loss"], rel=1e-5)


def test_rows_of_spans_do_not_feel_padding_unless_it_competes():
    outputs, batch = spans(length=7)
    batch["input_mask"] = np.ones([6, 7], np.int32)
    padded = {name: np.pad(array, [(0, 0), (0, 5)]) for name, array in outputs.items()}
    longer = {**batch, "input_mask": np.pad(batch["input_mask"], [(0, 0), (0, 5)])}
    alone, beside = (
        [measured(SpanObjective(padding_competes=competes), *pair)["loss"] for competes in (0, 1)]
        for pair in ((outputs, batch), (padded, longer))
    )
    assert alone[0] == pytest.approx(alone[1], rel=1e-6)
    assert beside[0] == pytest.approx(alone[0], rel=1e-6)
    assert beside[1] > alone[1] + 0.1  # five logits of 0 more


def test_class_weights_weigh_the_mean_as_in_pytorch():
    logits = DRAWS.normal(size=[6, 3]).astype("float32")
    labels = DRAWS.integers(0, 3, [6]).astype("int32")
    weights = np.array([1.0, 0.5, 4.0])[labels]
    losses = -log_softmax(logits)[np.arange(6), labels]
    found = measured(
        ClassificationObjective([1.0, 0.5, 4.0]), {"logits": logits}, {"label_ids": labels}
    )
    assert found["loss"] == pytest.approx((losses * weights).sum() / weights.sum(), rel=1e-6)
    assert found["accuracy"] == pytest.approx((logits.argmax(-1) == labels).mean())


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 4.0]])
def test_several_labels_have_the_mean_of_binary_cross_entropies(weights):
    logits = DRAWS.normal(size=[6, 3]).astype("float32") * 5
    held = DRAWS.integers(0, 2, [6, 3])
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    losses = held * np.log(probabilities) * np.array(weights or 1.0)
    losses = -(losses + (1 - held) * np.log1p(-probabilities))
    found = measured(MultiLabelObjective(weights), {"logits": logits}, {"label_ids": held})
    assert found["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert found["accuracy"] == pytest.approx(((logits >= 0) == held).mean())


def test_huge_logits_of_several_labels_have_a_finite_loss():
    found = measured(
        MultiLabelObjective(),
        {"logits": np.array([[500.0, -500.0]], np.float32)},
        {"label_ids": np.array([[0, 1]])},
    )
    assert found["loss"] == pytest.approx(500.0)


def test_tags_are_the_mean_over_tagged_tokens_of_rows_that_count():
    tags = np.array([[0, 1, 0, 3, 0], [0, 2, 2, 0, 0], [0] * 5, [0, 3, 1, 1, 0]], np.int32)
    outputs = {"logits": DRAWS.normal(size=[4, 5, 3]).astype("float32")}
    batch = {"tag_ids": tags, "example_weights": np.array([1, 1, 1, 0], np.float32)}
    objective, tagged = TagObjective(), tags[:3] > 0
    losses = -np.take_along_axis(log_softmax(outputs["logits"]), tags[..., None] - 1, -1)[..., 0]
    right = outputs["logits"].argmax(-1) == tags - 1
    whole, counts = measured(objective, outputs, batch), objective.normalizers(batch)
    assert whole["loss"] == pytest.approx(losses[:3][tagged].mean(), rel=1e-5)
    assert whole["accuracy"] == pytest.approx(right[:3][tagged].mean())
    ends = ((0, 2), (2, 3), (3, 4))
    parts = [measured(objective, part(outputs, *at), part(batch, *at), counts) for at in ends]
    assert sum(figures["loss"] for figures in parts) == pytest.approx(whole["loss"], rel=1e-5)
