import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.layers.dropout import (
    WORDS,
    Dropout,
    address_keys,
    keep_mask,
    random_address,
    random_words,
    stream_keys,
)

M32 = 0xFFFFFFFF


def mix(word, key=0):
    """The hash in Python's own integers."""
    word = ((word ^ (word >> 16)) * 0x7FEB352D & M32) ^ key
    word = (word ^ (word >> 15)) * 0x846CA68B & M32
    return word ^ (word >> 16)


def expected_keys(address, stream):
    keys = [0x243F6A88, 0x85A308D3]
    for part in address:
        keys = [mix(key * 0x9E3779B9 + part & M32) for key in keys]
    return [mix(key ^ ((stream + 1) * 0x9E3779B9 & M32)) for key in keys]


def test_the_bits_are_those_of_the_written_definition():
    address, stream = [7, 4_000_000_000, 1, 3], 36
    keys = expected_keys(address, stream)
    assert np.array(stream_keys(address_keys(address), stream)).tolist() == keys
    words = [mix(at * 0x9E3779B9 + keys[0] & M32, keys[1]) for at in range(100)]
    assert np.array(random_words(np.array(keys, np.uint32), 100)).tolist() == words


def test_integers_and_tensors_are_the_same_address():
    for dtype in ("int32", "int64", "uint32"):
        tensor = ops.convert_to_tensor([5, 6, 7, 8], dtype=dtype)
        assert np.array_equal(address_keys(tensor), address_keys([5, 6, 7, 8]))


def draw(address, stream=0, rate=0.1, shape=(64, 64)):
    with random_address(address):
        return np.array(Dropout(rate, stream)(np.ones(shape, np.float32), training=True))


def test_every_part_of_the_address_and_the_stream_change_the_draw():
    base = draw([1, 2, 3, 4]) > 0
    others = [[2, 2, 3, 4], [1, 3, 3, 4], [1, 2, 4, 4], [1, 2, 3, 5], [2, 1, 3, 4]]
    masks = [draw(address) > 0 for address in others] + [draw([1, 2, 3, 4], stream=1) > 0]
    for mask in masks:
        # Independent masks agree in 0.81 + 0.01 = 82 % of the positions.
        assert abs(np.mean(mask == base) - 0.82) < 0.03


def test_the_rate_holds_and_neighbours_are_independent():
    count, dropped = 0, 0
    pairs = 0
    for step in range(40):
        gone = draw([0, step, 0, 0], rate=0.1, shape=(200, 200)) == 0
        count, dropped = count + gone.size, dropped + gone.sum()
        pairs += (gone[:, 1:] & gone[:, :-1]).sum()
    deviation = np.sqrt(0.09 / count)
    assert abs(dropped / count - 0.1) < 4 * deviation
    assert abs(pairs / count - 0.01 * 199 / 200) < 4 * np.sqrt(0.01 / count)


def test_a_longer_tensor_begins_like_a_shorter_one():
    keys = address_keys([1, 1, 1, 1])
    assert np.array_equal(
        np.array(keep_mask(keys, [4, 5], WORDS // 2))[:2], keep_mask(keys, [2, 5], WORDS // 2)
    )


def test_what_is_kept_is_scaled_up():
    values = np.array(Dropout(0.25, 0)(np.full([100, 100], 3.0, np.float32), training=True))
    assert set(np.unique(values).tolist()) == {0.0, 4.0}
    assert abs(values.mean() - 3.0) < 0.1


def test_without_an_address_every_call_draws_anew():
    dropout, ones = Dropout(0.5, 0), np.ones([10, 10], np.float32)
    assert not np.array_equal(dropout(ones, training=True), dropout(ones, training=True))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="compares TensorFlow's modes")
def test_eager_graph_and_xla_draw_the_same_bits():
    import tensorflow as tf

    from keras_bert_impl.cpu_kernels.xla_programs import compiled

    dropout, ones = Dropout(0.3, 9), tf.ones([33, 7])

    def drawn(address):
        with random_address(address):
            return dropout(ones, training=True)

    address = tf.constant([1, 2, 3, 4], tf.int64)
    eager = drawn(address)
    assert np.array_equal(eager, tf.function(drawn)(address))
    # XLA multiplies once where the others divide: the bits dropped are the same.
    assert np.array_equal(eager.numpy() == 0, compiled(drawn)(address).numpy() == 0)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="compares JAX's modes")
def test_jit_draws_the_same_bits_as_eager():
    import jax

    dropout, ones = Dropout(0.3, 9), np.ones([33, 7], np.float32)

    def drawn(address):
        with random_address(address):
            return dropout(ones, training=True)

    address = np.array([1, 2, 3, 4], np.int32)
    assert np.array_equal(drawn(address), jax.jit(drawn)(address))
