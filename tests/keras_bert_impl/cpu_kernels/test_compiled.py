import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.cpu_kernels import compiled
from keras_bert_impl.cpu_kernels.compiled import compiled_kernel

ROWS, SHIFT, SCALE = tf.range(15.0), tf.constant([2.0]), tf.range(1.0, 16.0)


def weighted(inputs, constants):
    """Uses all that a kernel is given: each row's number counts too."""
    (rows, shift), (scale, first_row) = inputs, constants
    numbers = tf.cast(tf.range(tf.shape(rows)[0]) + first_row, tf.float32)
    return tf.sin(rows + shift) * scale + numbers * rows


def result_and_gradients(function, constants):
    with tf.GradientTape() as tape:
        tape.watch([ROWS, SHIFT])
        result = function((ROWS, SHIFT), constants)
    return [result, *tape.gradient(result, [ROWS, SHIFT])]


@pytest.mark.parametrize("cores", [1, 4])
def test_however_it_is_split_a_kernel_gives_the_functions_result_and_gradients(monkeypatch, cores):
    monkeypatch.setattr(compiled, "_LARGE", 1)
    monkeypatch.setattr(compiled, "_cores", lambda: cores)
    kernel = compiled_kernel(weighted, (True, False), (True,))
    expected = result_and_gradients(lambda *all_: weighted(all_[0], (*all_[1], 0)), (SCALE,))
    for one, other in zip(result_and_gradients(kernel, (SCALE,)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_constant_of_one_row_goes_to_all_parts(monkeypatch):
    monkeypatch.setattr(compiled, "_LARGE", 1)
    monkeypatch.setattr(compiled, "_cores", lambda: 2)
    kernel = compiled_kernel(weighted, (True, False), (True,))
    expected = weighted((ROWS, SHIFT), (tf.constant([3.0]), 0))
    np.testing.assert_allclose(kernel((ROWS, SHIFT), (tf.constant([3.0]),)), expected, rtol=1e-5)


def test_only_large_kernels_with_enough_rows_are_split(monkeypatch):
    monkeypatch.setattr(compiled, "_cores", lambda: 4)
    assert compiled._bounds(tf.zeros([8, 2**15])) == [0, 2, 4, 6, 8]
    assert compiled._bounds(tf.zeros([8, 2**14])) == [0, None]
    assert compiled._bounds(tf.zeros([3, 2**18])) == [0, None]


def test_what_may_become_large_is_split_where_its_rows_are_known(monkeypatch):
    monkeypatch.setattr(compiled, "_cores", lambda: 2)
    with tf.Graph().as_default():
        for shape, bounds in (([8, None], [0, 4, 8]), ([None, 8], [0, None])):
            assert compiled._bounds(tf.compat.v1.placeholder(tf.float32, shape)) == bounds
