import tensorflow as tf

from keras_bert_impl.training.loss_scale import LossScale


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
