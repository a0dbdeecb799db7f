import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.cpu_kernels import training
from keras_bert_impl.cpu_kernels.training import TrainingKernels, update_step_of
from keras_bert_impl.layers import kernels
from keras_bert_impl.optimizers.bert_adamw import BertAdamW, Lamb

NAMES = ("kernel", "bias", "other_kernel")


def after_steps(chosen, steps=5, **options):
    draw = np.random.default_rng(0)
    variables = [
        keras.Variable(draw.standard_normal((3, 4)).astype("float32"), name=name) for name in NAMES
    ]
    optimizer = BertAdamW(weight_decay=0.1, **options)
    optimizer.build(variables)
    update_step = update_step_of(optimizer, chosen)

    @tf.function
    def step(gradients, rate):
        for variable, gradient in zip(variables, gradients, strict=True):
            update_step(gradient, variable.value, rate)
        optimizer.iterations.assign_add(1)

    for number in range(steps):
        gradients = [tf.constant(draw.standard_normal((3, 4)), tf.float32) for _ in variables]
        step(gradients, tf.constant(0.01 * number))
    state = variables + optimizer.first_moments + optimizer.second_moments
    return update_step, [np.array(value) for value in state]


@pytest.mark.parametrize("options", [{}, {"bias_correction": True}])
def test_the_compiled_update_is_the_plain_one(monkeypatch, options):
    calls, update = [], training._adamw
    counted = lambda *arguments: calls.append(arguments) or update(*arguments)  # noqa: E731
    monkeypatch.setattr(training, "_adamw", counted)
    _, plain = after_steps(kernels.PLAIN, **options)
    assert not calls
    _, fast = after_steps(TrainingKernels(), **options)
    assert len(calls) == 1  # all variables are of one shape, and share a program
    for one, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-7)


def test_the_correction_makes_the_first_step_as_large_as_the_rate():
    """m and v start at 0: corrected, the first direction is the gradient's sign."""
    variable = keras.Variable(np.zeros(2, "float32"), name="kernel")
    optimizer = BertAdamW(weight_decay=0.0, bias_correction=True)
    optimizer.build([variable])
    update_step = update_step_of(optimizer, TrainingKernels())
    tf.function(update_step)(tf.constant([3.0, -0.5]), variable.value, tf.constant(0.1))
    np.testing.assert_allclose(np.array(variable), [-0.1, 0.1], rtol=1e-4)


def test_other_optimizers_keep_their_own_update():
    other = Lamb()
    assert update_step_of(other, TrainingKernels()) == other.update_step
    plain = BertAdamW()
    assert update_step_of(plain, kernels.PLAIN) == plain.update_step
