import numpy as np

from keras_bert_impl.layers.bilstm import ScalarMix
from tests.support.layer_checks import check_layer, weights_of
from tests.support.tiny_bert import scatter_weights

LAYERS = np.random.default_rng(0).standard_normal([2, 5, 4, 3]).astype("float32")


def test_it_starts_as_the_mean():
    np.testing.assert_allclose(ScalarMix()(LAYERS), LAYERS.mean(axis=2), atol=1e-6)


def test_it_is_gamma_times_the_sum_by_softmax_weights():
    layer = ScalarMix(name="mix")
    layer(LAYERS)
    weights = weights_of(scatter_weights(layer))
    shares = np.exp(weights["scalars"])
    expected = weights["gamma"] * np.einsum("blkh,k->blh", LAYERS, shares / shares.sum())
    np.testing.assert_allclose(layer(LAYERS), expected, atol=1e-5)


def test_it_is_a_layer_of_keras():
    layer = ScalarMix(name="mix")
    layer(LAYERS)
    check_layer(layer, LAYERS)
