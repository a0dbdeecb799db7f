import math

import keras
import numpy as np
import pytest

from keras_bert_impl.config import ACTIVATIONS
from keras_bert_impl.layers.base import Dense, truncated_normal
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.tiny_bert import scatter_weights

INPUTS = np.random.default_rng(0).standard_normal([2, 3, 5]).astype("float32")
FORMULAE = {
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "gelu_erf": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "relu": lambda x: max(x, 0.0),
    "tanh": math.tanh,
    "linear": lambda x: x,
}


def built(*arguments, **options):
    layer = Dense(*arguments, name="dense", **options)
    layer(INPUTS)
    return scatter_weights(layer)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_is_the_formula(activation):
    layer = built(4, activation)
    weights = weights_of(layer)
    expected = np.vectorize(FORMULAE[activation])(INPUTS @ weights["kernel"] + weights["bias"])
    np.testing.assert_allclose(as_float64(layer(INPUTS)), expected, atol=1e-6)


def test_it_is_a_layer_of_keras():
    check_layer(built(4, "relu", 0.05), INPUTS)


def test_it_computes_in_bfloat16_with_weights_in_float32():
    layer = built(4, dtype="mixed_bfloat16")
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    outputs = layer(INPUTS)
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    np.testing.assert_allclose(as_float64(outputs), as_float64(built(4)(INPUTS)), atol=0.02)


def test_kernels_start_within_two_standard_deviations():
    numbers = np.array(truncated_normal(0.02)([300, 300]))
    assert np.abs(numbers).max() <= 0.04 + 1e-6
    assert 0.85 < numbers.std() / 0.02 < 0.92  # 0.8796 is the deviation of a normal cut there
