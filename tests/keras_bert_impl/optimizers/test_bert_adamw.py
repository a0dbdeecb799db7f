"""BertAdamW and LAMB beside the formulae in float64 NumPy."""

import keras
import numpy as np
import pytest

from keras_bert_impl.optimizers.bert_adamw import BertAdamW
from keras_bert_impl.optimizers.lamb import Lamb

RATE, DECAY, B1, B2, EPSILON = 0.1, 0.01, 0.9, 0.999, 1e-6


def numpy_steps(weight, gradients, decay, bias_correction=False, trust=False):
    """The published formulae, one line each."""
    weight = weight.astype(np.float64)
    m, v = np.zeros_like(weight), np.zeros_like(weight)
    for t, g in enumerate(gradients, start=1):
        m = B1 * m + (1 - B1) * g
        v = B2 * v + (1 - B2) * g * g
        scale = (1 - B1**t, 1 - B2**t) if bias_correction else (1, 1)
        update = (m / scale[0]) / (np.sqrt(v / scale[1]) + EPSILON) + decay * weight
        ratio = np.linalg.norm(weight) / np.linalg.norm(update) if trust else 1.0
        weight = weight - RATE * ratio * update
    return weight


def keras_steps(optimizer, name, weight, gradients):
    variable = keras.Variable(weight, name=name)
    for gradient in gradients:
        optimizer.apply([gradient], [variable])
    return np.array(variable)


@pytest.fixture
def start():
    draws = np.random.default_rng(0)
    weight = draws.normal(size=[3, 4]).astype("float32")
    return weight, [draws.normal(size=[3, 4]).astype("float32") for _ in range(5)]


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize(("name", "decay"), [("kernel", DECAY), ("bias", 0.0)])
def test_adamw_is_the_formula_and_leaves_biases_undecayed(start, name, decay, bias_correction):
    optimizer = BertAdamW(RATE, weight_decay=DECAY, bias_correction=bias_correction)
    expected = numpy_steps(*start, decay, bias_correction)
    np.testing.assert_allclose(keras_steps(optimizer, name, *start), expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "decay"), [("kernel", DECAY), ("bias", 0.0)])
def test_lamb_scales_by_the_weights_size_except_where_nothing_decays(start, name, decay):
    optimizer = Lamb(RATE, weight_decay=DECAY, bias_correction=True)
    expected = numpy_steps(*start, decay, bias_correction=True, trust=name == "kernel")
    np.testing.assert_allclose(keras_steps(optimizer, name, *start), expected, rtol=1e-4)


def test_lamb_moves_a_weight_of_zeros():
    moved = keras_steps(Lamb(RATE), "kernel", np.zeros(2, "float32"), [np.ones(2, "float32")])
    assert np.isfinite(moved).all()
    assert (moved != 0).all()


def test_lower_layers_learn_more_slowly():
    optimizer = BertAdamW(RATE, weight_decay=0.0, layer_decay=0.5)
    paths = ["embeddings", "layer_0", "layer_1", "classifier"]
    variables = []
    for path in paths:
        with keras.name_scope(path):
            variables.append(keras.Variable(np.zeros(1, "float32"), name="kernel"))
    optimizer.apply([np.ones(1, "float32")] * 4, variables)
    moves = np.array([float(np.array(variable)[0]) for variable in variables])
    np.testing.assert_allclose(moves / moves[-1], [0.125, 0.25, 0.5, 1.0], rtol=1e-6)


@pytest.mark.parametrize("kind", [BertAdamW, Lamb])
def test_an_optimizer_can_be_made_again_from_its_config(kind):
    optimizer = kind(RATE, weight_decay=0.02, bias_correction=True, layer_decay=0.9)
    again = kind.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_it_works_in_plain_keras_fit():
    inputs = np.random.default_rng(0).normal(size=[64, 3]).astype("float32")
    targets = inputs @ np.array([[1.0], [-2.0], [0.5]], "float32")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(BertAdamW(learning_rate=0.05, weight_decay=0.0), "mse")
    losses = model.fit(inputs, targets, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 10
