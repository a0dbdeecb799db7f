import numpy as np

from keras_bert_impl.layers.pooler import Pooler
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

INPUTS = np.random.default_rng(0).standard_normal([2, 5, TINY.hidden_size]).astype("float32")


def built():
    layer = Pooler(TINY, name="pooler")
    layer(INPUTS)
    return scatter_weights(layer)


def test_it_is_tanh_of_the_first_position():
    layer = built()
    weights = weights_of(layer)
    expected = np.tanh(INPUTS[:, 0] @ weights["dense/kernel"] + weights["dense/bias"])
    np.testing.assert_allclose(as_float64(layer(INPUTS)), expected, atol=1e-6)


def test_no_other_position_counts():
    layer, changed = built(), INPUTS.copy()
    changed[:, 1:] += 1
    assert np.array_equal(as_float64(layer(INPUTS)), as_float64(layer(changed)))


def test_it_is_a_layer_of_keras():
    check_layer(built(), INPUTS)
