"""Sequences as one matrix and back, and what a matrix does best: products."""

from typing import Any

import tensorflow as tf


def rows_of(tensor: Any) -> Any:
    """[..., width] -> [rows, width]: oneDNN multiplies matrices best.

    Example:
        >>> rows_of(tf.zeros([2, 3, 5])).shape.as_list()
        [6, 5]
    """
    return tf.reshape(tensor, [-1, tensor.shape[-1]])


def like(rows: Any, tensor: Any) -> Any:
    """[rows, width] -> [..., width] with the outer axes of `tensor`.

    Example:
        >>> like(tf.zeros([6, 4]), tf.zeros([2, 3, 5])).shape.as_list()
        [2, 3, 4]
    """
    outer = tf.shape(tensor)[:-1]
    shaped = tf.reshape(rows, tf.concat([outer, [rows.shape[-1]]], axis=0))
    shaped.set_shape([*tensor.shape[:-1], rows.shape[-1]])
    return shaped


def normalized(numbers: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """LayerNorm of float32 [rows, width], for use inside compiled code.

    The means are products with a column, which XLA vectorizes; its sums along a row it does not.

    Example:
        >>> row = tf.constant([[1.0, 3.0]])
        >>> normalized(row, tf.ones([2]), tf.zeros([2]), 1e-12).numpy().tolist()
        [[-1.0, 1.0]]
    """
    width = numbers.shape[-1]
    average = tf.fill([width, 1], 1.0 / width)
    centered = numbers - tf.matmul(numbers, average)
    variance = tf.matmul(tf.square(centered), average)
    return centered * tf.math.rsqrt(variance + epsilon) * gamma + beta
