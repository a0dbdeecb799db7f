"""The loss of tags, held to a plain mean over the tokens that have one."""

import numpy as np
import pytest
from keras import ops

from pipelines.tasks.tagging.objective import TagObjective

DRAW = np.random.default_rng(1)
LOGITS = DRAW.normal(size=[4, 5, 3]).astype("float32")
TAGS = np.array([[0, 1, 0, 3, 0], [0, 2, 2, 0, 0], [0] * 5, [0, 3, 1, 1, 0]], np.int32)


def loss_of(rows, normalizers, **more):
    batch = {"tag_ids": TAGS[rows], **more}
    outputs = {"logits": ops.convert_to_tensor(LOGITS[rows])}
    loss, metrics = TagObjective().loss(outputs, batch, normalizers)
    return float(loss), float(metrics["accuracy"])


def plain(rows):
    losses, right = [], []
    for logits, tags in zip(LOGITS[rows], TAGS[rows], strict=True):
        for scores, tag in zip(logits.astype("float64"), tags, strict=True):
            if tag:
                losses.append(np.log(np.exp(scores).sum()) - scores[tag - 1])
                right.append(scores.argmax() == tag - 1)
    return losses, right


def test_it_is_the_mean_over_tagged_tokens():
    every = np.arange(4)
    losses, right = plain(every)
    found = loss_of(every, TagObjective().normalizers({"tag_ids": TAGS}))
    np.testing.assert_allclose(found, (np.mean(losses), np.mean(right)), rtol=1e-6)


def test_the_parts_of_a_batch_add_up():
    normalizers = TagObjective().normalizers({"tag_ids": TAGS})
    parts = [loss_of(rows, normalizers) for rows in ([0, 2], [1, 3])]
    np.testing.assert_allclose(np.sum(parts, axis=0), loss_of([0, 1, 2, 3], normalizers), rtol=1e-6)


def test_rows_of_no_weight_do_not_count():
    weights = np.array([1, 1, 1, 0], np.float32)
    batch = {"tag_ids": TAGS, "example_weights": weights}
    normalizers = TagObjective().normalizers(batch)
    assert normalizers["tags"] == 4
    found = loss_of(np.arange(4), normalizers, example_weights=weights)
    losses, _ = plain([0, 1, 2])
    assert found[0] == pytest.approx(np.mean(losses), rel=1e-6)
