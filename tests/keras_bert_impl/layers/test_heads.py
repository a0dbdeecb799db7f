import keras
import numpy as np
import pytest

from keras_bert_impl.layers.heads import Logits, last_positions
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

INPUTS = np.random.default_rng(0).standard_normal([4, 6, TINY.hidden_size]).astype("float32")


def built(config=TINY, **options):
    layer = Logits(config, 3, name="classifier", **options)
    layer(INPUTS)
    return scatter_weights(layer)


@pytest.mark.parametrize("inputs", [INPUTS, INPUTS[:, 0]])
def test_it_is_a_product_and_a_bias(inputs):
    layer = built()
    weights = weights_of(layer)
    expected = inputs @ weights["dense/kernel"] + weights["dense/bias"]
    np.testing.assert_allclose(as_float64(layer(inputs)), expected, atol=1e-5)


@pytest.mark.parametrize(("dropout", "moves"), [(True, True), (False, False)])
def test_it_drops_in_training_if_asked_to(dropout, moves):
    layer = built(TINY.replace(hidden_dropout_prob=0.5), dropout=dropout)
    still, training = as_float64(layer(INPUTS)), as_float64(layer(INPUTS, training=True))
    assert np.array_equal(still, training) is not moves


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_scores_are_those_of_float32_at_every_precision(policy):
    layer, rounded = built(dtype=policy), keras.ops.cast(INPUTS, "bfloat16")
    outputs = layer(rounded)
    assert keras.backend.standardize_dtype(outputs.dtype) == "float32"
    expected = built()(keras.ops.cast(rounded, "float32"))
    np.testing.assert_array_equal(as_float64(outputs), as_float64(expected))


def test_it_is_a_layer_of_keras():
    check_layer(built(dropout=False), INPUTS)


def test_the_last_token_stands_before_padding_wherever_that_is():
    masks = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]])
    assert np.array(last_positions(masks)).tolist() == [[1], [3], [2], [0]]
