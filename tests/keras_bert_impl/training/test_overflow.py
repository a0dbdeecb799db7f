"""In float16 a step that overflows is skipped whole, and the next one goes on."""

import numpy as np

from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from tests.support.toy_training import ToyObjective, toy_config, toy_features, toy_model


def test_a_step_with_an_infinite_gradient_changes_neither_weights_nor_moments():
    model, config = toy_model(), toy_config(precision="float16")
    state = TrainingState(model, config)
    step = TrainingStep(state, ToyObjective(), config)

    def take(features, number):
        before = [np.array(v) for v in (*model.weights, *state.optimizer.first_moments)]
        (row,) = step.run(*step.prepare([features], number, [1e-2]))
        after = [np.array(v) for v in (*model.weights, *state.optimizer.first_moments)]
        same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        return step.metrics(row), same

    good = toy_features(30)
    broken = {**good, "x": good["x"] * 1e30}
    _, unchanged = take(good, 0)
    assert not unchanged
    metrics, unchanged = take(broken, 1)
    assert unchanged
    assert (metrics["skipped_steps"], metrics["loss_scale"]) == (1.0, 2.0**15)
    metrics, unchanged = take(good, 2)
    assert not unchanged
    assert (metrics["skipped_steps"], metrics["loss_scale"]) == (1.0, 2.0**14)
