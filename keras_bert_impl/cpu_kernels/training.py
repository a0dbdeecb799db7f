"""The kernels of a training step: oneDNN products, and compiled kernels between them.

Where a compiled kernel has no faster form of its own, it calls the plain one. The step's last part,
AdamW's update, is compiled too: written as single operations it goes through memory a dozen times,
compiled it reads and writes every number once.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_bert_impl.compat import is_plain_variable, own_copy, variable_index
from keras_bert_impl.config import ACTIVATIONS
from keras_bert_impl.cpu_kernels.compiled import compiled_kernel, like, normalized, rows_of
from keras_bert_impl.cpu_kernels.xla_programs import compiled
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import Draw, drop
from keras_bert_impl.optimizers.bert_adamw import BertAdamW


class TrainingKernels(kernels.PlainKernels):
    """Fast kernels; same results as `PlainKernels` but for rounding.

    Rows of all sequences are in one matrix (see `rows_of`). Biases are added inside the compiled
    kernels, where they cost no pass of their own.
    """

    name = "fast"

    def dense(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        return _dense(inputs, _tensors((kernel, bias)), activation)

    def dense_add_norm(
        self, inputs: Any, dense: kernels.Dense, residual: Any, norm: kernels.Norm, draw: Draw
    ) -> Any:
        weights = _tensors((dense, norm))
        return _dense_add_norm(inputs, *weights, residual, draw.keys, draw.threshold)

    def self_attention(
        self, hidden: Any, projections: kernels.Projections, heads: int, mask: Any, draw: Draw
    ) -> Any:
        weights = _tensors(projections)
        return _self_attention(hidden, weights, heads, mask, draw.keys, draw.threshold)


def _tensors(weights: Any) -> Any:
    """The present values of weights, for functions that are traced once for all of them.

    Python's numbers among them, an epsilon or the scale of a `LowRank`, stay what they are.
    """
    return tf.nest.map_structure(
        lambda part: part if isinstance(part, float) else tf.convert_to_tensor(part), weights
    )


# Each is traced once for all blocks of a model.
_traced_once = functools.partial(tf.function, autograph=False)


@_traced_once
def _dense(inputs: Any, dense: kernels.Dense, activation: str) -> Any:
    kernel, bias = kernels.of_type(inputs.dtype, *dense)
    products = kernels.product(rows_of(inputs), kernel)
    return like(_ACTIVATED[activation]((products, bias), ()), inputs)


@_traced_once
def _dense_add_norm(
    inputs: Any, dense: kernels.Dense, norm: kernels.Norm, residual: Any, keys: Any, threshold: int
) -> Any:
    kernel, bias = kernels.of_type(inputs.dtype, *dense)
    gamma, beta, epsilon = norm
    products = kernels.product(rows_of(inputs), kernel)
    tensors = (products, bias, rows_of(residual), gamma, beta)
    return like(_add_norm(epsilon, threshold)(tensors, (keys,)), residual)


@_traced_once
def _self_attention(
    hidden: Any, projections: kernels.Projections, heads: int, mask: Any, keys: Any, threshold: int
) -> Any:
    kernel, bias = kernels.joined(projections)
    batch, length, width = tf.shape(hidden)[0], tf.shape(hidden)[1], hidden.shape[2]
    products = kernels.product(rows_of(hidden), kernel)
    products = tf.reshape(products, [batch, length, 3 * width])
    query, key, value = _split_heads(heads)((products, bias), ())
    scores = tf.matmul(query, key, transpose_b=True)  # [batch, heads, from, to]
    probabilities = _probabilities(width // heads, threshold)((scores,), (mask, keys))
    context = tf.matmul(probabilities, value)  # [batch, heads, length, size]
    return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [batch, length, width])


def _activated(activation: str) -> Any:
    def compute(inputs: Any, constants: Any) -> Any:
        del constants
        products, bias = (tf.cast(part, tf.float32) for part in inputs)
        return tf.cast(kernels.activate(products + bias, activation), inputs[0].dtype)

    return compiled_kernel(compute)


_ACTIVATED = {name: _activated(name) for name in ACTIVATIONS}
_kernels: dict[Any, Any] = {}


def _kept(key: Any, compute: Any, *split: Any) -> Any:
    """Each is made once: it holds a cache of what was compiled for which shapes.

    What `compute` refers to is kept for ever: no tensor, which belongs to a graph with its weights.
    """
    if key not in _kernels:
        _kernels[key] = compiled_kernel(compute, *split)
    return _kernels[key]


def _add_norm(epsilon: float, threshold: int) -> Any:
    def compute(inputs: Any, constants: Any) -> Any:
        products, bias, residual, *scales = inputs
        keys, first_row = constants
        gamma, beta = (tf.cast(one, tf.float32) for one in scales)
        outputs = tf.cast(products, tf.float32) + tf.cast(bias, tf.float32)
        # A part's draws are those of its rows in the whole: a split changes no bit.
        outputs = drop(outputs, Draw(keys, threshold, first_row * products.shape[-1]))
        total = outputs + tf.cast(residual, tf.float32)
        return tf.cast(normalized(total, gamma, beta, epsilon), residual.dtype)

    # Not split: its sums are products, which use all cores.
    return _kept(("add_norm", epsilon, threshold), compute)


def _split_heads(heads: int) -> Any:
    def compute(inputs: Any, constants: Any) -> Any:
        del constants
        products, bias = inputs
        # Inside a compiled kernel every size is known, even where the graph around it knows none.
        batch, length = tf.shape(products)[0], tf.shape(products)[1]
        dtype = products.dtype
        products = tf.cast(products, tf.float32) + tf.cast(bias, tf.float32)
        parts = tf.reshape(tf.cast(products, dtype), [batch, length, 3, heads, -1])
        return tuple(tf.transpose(parts[:, :, part], [0, 2, 1, 3]) for part in range(3))

    return _kept(("split_heads", heads), compute)


def _probabilities(size: int, threshold: int) -> Any:
    def compute(inputs: Any, constants: Any) -> Any:
        (scores,), (mask, keys, first_row) = inputs, constants
        numbers_a_row = tf.reduce_prod(tf.shape(scores)[1:])  # heads x length x length
        part = Draw(keys, threshold, first_row * numbers_a_row)
        return kernels.PLAIN.attention_probabilities(scores, size, mask, part)

    return _kept(("probabilities", size, threshold), compute, (True,), (True, False))


def update_step_of(optimizer: Any, chosen: kernels.PlainKernels) -> Callable[[Any, Any, Any], None]:
    """The optimizer's `update_step`, compiled (of a `BertAdamW`) for the fast kernels."""
    # Not `isinstance`: LAMB is a subclass with another update.
    if chosen is kernels.PLAIN or type(optimizer) is not BertAdamW:
        return optimizer.update_step

    adamw = compiled(_adamw)  # of this optimizer only: it keeps the variables that it was made for

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = variable_index(optimizer, variable)  # as update_step finds it
        moments = (optimizer.first_moments[index], optimizer.second_moments[index])
        weights = (variable, *(own_copy(moment.value) for moment in moments))
        # What is no plain variable (a TPU's, say) keeps the plain update.
        if not all(map(is_plain_variable, weights)):
            optimizer.update_step(gradient, variable, learning_rate)
            return
        adamw(
            *weights,
            gradient,
            tf.cast(learning_rate, tf.float32) * optimizer._factors[index],
            # A tensor: a Python number would be a program of its own for each value.
            tf.constant(optimizer.decay if optimizer._decayed[index] else 0.0, tf.float32),
            optimizer.corrections() if optimizer.bias_correction else None,
            (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon),
        )

    return update_step


def _adamw(
    variable: Any,
    first_moment: Any,
    second_moment: Any,
    gradient: Any,
    rate: Any,
    decay: Any,
    corrections: tuple[Any, Any] | None,
    constants: tuple[float, float, float],
) -> None:
    beta_1, beta_2, epsilon = constants
    m = first_moment + (gradient - first_moment) * (1.0 - beta_1)
    v = second_moment + (tf.square(gradient) - second_moment) * (1.0 - beta_2)
    of_m, of_v = (m, v) if corrections is None else (m / corrections[0], v / corrections[1])
    direction = of_m / (tf.sqrt(of_v) + epsilon) + decay * variable
    first_moment.assign(m)
    second_moment.assign(v)
    variable.assign_sub(rate * direction)
