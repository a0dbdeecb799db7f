import numpy as np
import pytest

from keras_bert_impl.layers.base import LayerNorm
from tests.support.layer_checks import as_float64, check_layer, normalized, weights_of
from tests.support.tiny_bert import scatter_weights

INPUTS = 3 + np.random.default_rng(0).standard_normal([2, 3, 8]).astype("float32")


def built(epsilon, **options):
    layer = LayerNorm(epsilon, name="norm", **options)
    layer(INPUTS)
    return scatter_weights(layer)


@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
def test_it_is_the_formula(epsilon):
    layer = built(epsilon)
    weights = weights_of(layer)
    expected = normalized(INPUTS.astype("float64"), weights["gamma"], weights["beta"], epsilon)
    np.testing.assert_allclose(as_float64(layer(INPUTS)), expected, atol=1e-5)


def test_it_is_a_layer_of_keras():
    check_layer(built(1e-6), INPUTS)


def test_a_row_of_equal_numbers_gives_beta():
    layer = built(1e-12)
    flat = np.full([1, 8], 7.0, "float32")
    np.testing.assert_allclose(as_float64(layer(flat))[0], weights_of(layer)["beta"], atol=1e-5)
