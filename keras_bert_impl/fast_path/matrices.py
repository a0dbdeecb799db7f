"""Sequences as one matrix and back: oneDNN multiplies matrices best."""

from typing import Any

import tensorflow as tf


def rows_of(tensor: Any) -> Any:
    """[..., width] -> [rows, width].

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
