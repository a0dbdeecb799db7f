import numpy as np
import pytest

from keras_bert_impl.layers.heads import MaskedMean, Pooler
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


def test_it_is_a_layer_of_keras():
    check_layer(built(), INPUTS)


MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32")


def test_the_mean_is_that_of_the_real_tokens():
    expected = [INPUTS[0, :3].astype("float64").mean(0), INPUTS[1].astype("float64").mean(0)]
    np.testing.assert_allclose(as_float64(MaskedMean()(INPUTS, MASK)), expected, atol=1e-6)


def test_padding_does_not_count_and_nothing_but_padding_is_zero():
    changed = INPUTS.copy()
    changed[0, 3:] += 7
    same = [as_float64(MaskedMean()(inputs, MASK)) for inputs in (INPUTS, changed)]
    assert np.array_equal(*same)
    assert not as_float64(MaskedMean()(INPUTS, MASK * 0)).any()


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_adds_up_in_float32(policy):
    """A thousand ones and a thousand halves: in bfloat16 the sum would stop growing at 256."""
    sequence = np.repeat([1.0, 0.5], 1000).reshape(1, 2000, 1).astype("float32")
    mean = MaskedMean(dtype=policy)(sequence, np.ones([1, 2000], "int32"))
    assert as_float64(mean).item() == 0.75
