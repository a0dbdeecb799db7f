import keras
import numpy as np
import pytest

from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.random_address import random_address


def test_nothing_is_dropped_outside_of_training_or_at_rate_zero():
    ones = np.ones([5, 5], np.float32)
    assert np.array_equal(Dropout(0.5, 0)(ones, training=False), ones)
    assert np.array_equal(Dropout(0.0, 0)(ones, training=True), ones)


def test_what_is_kept_is_scaled_up():
    values = np.array(Dropout(0.25, 0)(np.full([100, 100], 3.0, np.float32), training=True))
    assert set(np.unique(values).tolist()) == {0.0, 4.0}
    assert abs(values.mean() - 3.0) < 0.1


def test_without_an_address_every_call_draws_anew():
    dropout, ones = Dropout(0.5, 0), np.ones([10, 10], np.float32)
    assert not np.array_equal(dropout(ones, training=True), dropout(ones, training=True))


def test_the_type_of_the_input_stays():
    with random_address([0, 0, 0, 0]):
        half = Dropout(0.5, 0, dtype="mixed_bfloat16")(np.ones([2, 2]), training=True)
    assert keras.backend.standardize_dtype(half.dtype) == "bfloat16"


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="compares TensorFlow's modes")
def test_eager_graph_and_xla_draw_the_same_bits():
    import tensorflow as tf

    dropout, ones = Dropout(0.3, 9), tf.ones([33, 7])

    def drawn(address):
        with random_address(address):
            return dropout(ones, training=True)

    address = tf.constant([1, 2, 3, 4], tf.int64)
    eager = drawn(address)
    assert np.array_equal(eager, tf.function(drawn)(address))
    # XLA multiplies once where the others divide: the bits dropped are the same.
    compiled = tf.function(drawn, jit_compile=True)(address)
    assert np.array_equal(eager.numpy() == 0, compiled.numpy() == 0)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="compares JAX's modes")
def test_jit_draws_the_same_bits_as_eager():
    import jax

    dropout, ones = Dropout(0.3, 9), np.ones([33, 7], np.float32)

    def drawn(address):
        with random_address(address):
            return dropout(ones, training=True)

    address = np.array([1, 2, 3, 4], np.int32)
    assert np.array_equal(drawn(address), jax.jit(drawn)(address))
