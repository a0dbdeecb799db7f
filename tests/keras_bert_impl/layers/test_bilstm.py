"""The BiLSTM, held to one written out in NumPy: values, gradients, padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.cpu_kernels.xla_programs import compiled
from keras_bert_impl.layers.bilstm import StackedBiLSTM
from tests.support.layer_checks import check_layer, weights_of
from tests.support.numpy_lstm import bilstm
from tests.support.tiny_bert import scatter_weights

LENGTHS = [6, 1, 4]
DRAW = np.random.default_rng(0)
INPUTS = DRAW.standard_normal([3, 6, 5])
MASK = (np.arange(6) < np.array(LENGTHS)[:, None]).astype("int32")
FACTORS = DRAW.standard_normal([3, 6, 8]) * MASK[..., None]


@pytest.fixture(scope="module")
def layer():
    made = StackedBiLSTM(4, name="lstm", dtype="float64")
    made(INPUTS, MASK)
    return scatter_weights(made, deviation=0.5)


def test_it_is_two_lstms_a_layer_that_begin_at_a_rows_two_ends(layer):
    outputs = np.array(layer(INPUTS, MASK)) * MASK[..., None]
    expected = bilstm(INPUTS, LENGTHS, weights_of(layer))
    # JAX has no float64 unless a whole process asks for it.
    within = 1e-12 if keras.backend.backend() == "tensorflow" else 2e-6
    np.testing.assert_allclose(outputs, expected, atol=within)


def test_more_padding_changes_nothing(layer):
    longer = np.pad(INPUTS, [(0, 0), (0, 3), (0, 0)], constant_values=7.0)
    outputs = np.array(layer(longer, np.pad(MASK, [(0, 0), (0, 3)])))[:, :6]
    same = np.array(layer(INPUTS, MASK))
    np.testing.assert_array_equal(outputs * MASK[..., None], same * MASK[..., None])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients")
def test_gradients_are_the_slopes_of_the_lstm_in_numpy(layer):
    variables = [weight.value for weight in layer.trainable_weights]

    @compiled  # as the others are not
    def gradients_of(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(layer(inputs, MASK) * FACTORS)
        return tape.gradient(loss, [*variables, inputs])

    *found, of_inputs = gradients_of(tf.constant(INPUTS))
    names = [weight.path.split("/", 1)[1] for weight in layer.trainable_weights]
    gradients = {name: value.numpy() for name, value in zip(names, found, strict=True)}
    assert len(gradients) == 2 * 2 * 3
    values = {**weights_of(layer), "inputs": INPUTS}
    for name, gradient in {**gradients, "inputs": of_inputs.numpy()}.items():
        direction = DRAW.standard_normal(gradient.shape)
        losses = []
        for sign in (1, -1):
            moved = {**values, name: values[name] + sign * 1e-6 * direction}
            losses.append((bilstm(moved["inputs"], LENGTHS, moved) * FACTORS).sum())
        slope = (losses[0] - losses[1]) / 2e-6
        assert slope == pytest.approx((gradient * direction).sum(), rel=1e-6, abs=1e-7), name


def test_it_is_a_layer_of_keras():
    made = StackedBiLSTM(4, depth=1, name="lstm")
    check_layer(made, tf.constant(INPUTS, tf.float32), tf.constant(MASK))
