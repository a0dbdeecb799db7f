"""What every layer must do, whatever it computes."""

import keras
import numpy as np
from keras import ops


def symbolic(value):
    return keras.KerasTensor(value.shape, keras.backend.standardize_dtype(value.dtype))


def check_layer(layer, *inputs):
    """A layer is made again from its configuration, and says beforehand what it will give."""
    outputs = layer(*inputs)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    expected = again(*map(symbolic, inputs))
    assert expected.shape == tuple(outputs.shape)
    assert expected.dtype == keras.backend.standardize_dtype(outputs.dtype)
    for copy, weight in zip(again.weights, layer.weights, strict=True):
        assert copy.path.split("/")[1:] == weight.path.split("/")[1:]
        copy.assign(weight)
    np.testing.assert_array_equal(np.array(again(*inputs)), np.array(outputs))


def as_float64(value):
    return np.array(ops.cast(value, "float32"), np.float64)


def weights_of(layer):
    """A layer's weights in float64 by their paths below it."""
    return {w.path.split("/", 1)[1]: np.array(w, np.float64) for w in layer.weights}


def normalized(numbers, gamma, beta, epsilon):
    """LayerNorm of the last axis, as the paper defines it."""
    mean = numbers.mean(axis=-1, keepdims=True)
    variance = numbers.var(axis=-1, keepdims=True)
    return (numbers - mean) / np.sqrt(variance + epsilon) * gamma + beta
