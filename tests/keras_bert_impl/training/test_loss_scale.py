import numpy as np
import tensorflow as tf

from keras_bert_impl.training.state import LossScale, TrainingState
from keras_bert_impl.training.step import TrainingStep
from tests.support.toy_training import ToyObjective, toy_config, toy_features, toy_model


def after(steps, patience=2):
    scale = LossScale(dynamic=True, patience=patience)
    for finite in steps:
        scale.update(tf.constant(finite))
    return float(scale.scale), float(scale.skipped)


def test_an_overflow_halves_the_scale_and_counts_a_skipped_step():
    assert after([True, False]) == (2.0**14, 1.0)


def test_enough_good_steps_in_a_row_double_it():
    assert after([True, True]) == (2.0**16, 0.0)
    assert after([True, False, True]) == (2.0**14, 1.0)


def test_it_never_falls_below_one():
    assert after([False] * 20) == (1.0, 20.0)


def test_other_precisions_change_nothing():
    scale = LossScale(dynamic=False)
    gradients = [tf.constant([2.0])]
    assert float(scale.value()) == 1.0
    assert scale.unscale(gradients) is gradients


def test_moments_are_corrected_for_the_steps_that_were_taken():
    def weights_after(*batches):
        model, config = toy_model(), toy_config(precision="float16", bias_correction=True)
        step = TrainingStep(TrainingState(model, config), ToyObjective(), config)
        for number, features in enumerate(batches):
            step.run(*step.prepare([features], number, [1e-2]))
        return model.get_weights()

    good = toy_features(30)
    broken = {**good, "x": good["x"] * 1e30}
    skipping, alone = weights_after(broken, good, broken, good), weights_after(good, good)
    for one, other in zip(skipping, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


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
