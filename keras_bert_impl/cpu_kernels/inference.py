"""Inference: a graph with its weights cast once, written so that TensorFlow fuses it.

Without gradients and dropout oneDNN can do more of the work itself: TensorFlow's graph optimizer
turns a product, its bias and the GELU, residual or nothing that follows into one oneDNN call, which
leaves nothing for the elementwise passes but LayerNorm and softmax.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_bert_impl.cpu_kernels.compiled import like, normalized, rows_of
from keras_bert_impl.cpu_kernels.xla_programs import compiled
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import Draw
from keras_bert_impl.models.adapters import SharedEncoder
from keras_bert_impl.models.base import ConfiguredModel


def inference_function(model: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Makes the fastest function on a CPU of what a model computes outside of training.

    The weights of the blocks are copied into it, once, in the type that is computed in: it does
    not follow later changes of the model's weights, and has no gradients. Batch and length are
    free in every call. It takes a dict of features (what the model does not know is left aside).

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.config import named_config
        >>> from keras_bert_impl.models.encoder import BertEncoder
        >>> encoder = BertEncoder(named_config("tiny", 10))
        >>> ids = np.array([[2, 5, 3]], "int32")
        >>> features = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}
        >>> inference_function(encoder)(features)["pooled_output"].shape.as_list()
        [1, 128]
    """
    shared = model.shared_encoder if isinstance(model, ConfiguredModel) else None
    traced = traced_forward(model, InferenceKernels(shared))

    def compute(features: Mapping[str, Any]) -> dict[str, Any]:
        # A concrete function takes tensors of its own types only.
        tensors = {name: tf.convert_to_tensor(features[name]) for name in model.input}
        return traced({name: tf.cast(x, model.input[name].dtype) for name, x in tensors.items()})

    return compute


def traced_forward(model: Any, chosen: kernels.PlainKernels) -> Any:
    """A model outside of training as a concrete function, of and to a dict."""
    inputs = model.input.items()
    signature = {name: tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs}

    @tf.function(autograph=False)
    def forward(features: Any) -> Any:
        return dict(model(features, training=False))

    with kernels.use(chosen):
        return forward.get_concrete_function(signature)


# The forms that the optimizer knows: others are applied in float32 after the product.
_FUSED = {
    "gelu_tanh": lambda numbers: tf.nn.gelu(numbers, approximate=True),
    "gelu_erf": lambda numbers: tf.nn.gelu(numbers, approximate=False),
    "linear": lambda numbers: numbers,
}


class InferenceKernels(kernels.PlainKernels):
    """Forward-only kernels: same results as `PlainKernels` but for rounding; nothing is dropped.

    Weights are taken as they are while the graph is traced, so that they are cast once and not in
    every call: see `inference_function`. What is made of weights that several models share is kept
    by `shared`.
    """

    name = "inference"

    def __init__(self, shared: SharedEncoder | None = None) -> None:
        self._shared = shared

    def dense(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        products = self._affine(rows_of(inputs), kernel, bias)
        fused = _FUSED.get(activation)
        outputs = fused(products) if fused else kernels.activate(products, activation)
        return like(outputs, inputs)

    def layer_norm(self, inputs: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
        scale, shift = self._prepared(gamma, tf.float32), self._prepared(beta, tf.float32)
        return like(_layer_norm(rows_of(inputs), scale, shift, epsilon, dtype), inputs)

    def dense_add_norm(
        self, inputs: Any, dense: kernels.Dense, residual: Any, norm: kernels.Norm, draw: Draw
    ) -> Any:
        del draw  # nothing is dropped outside of training
        total = self._affine(rows_of(inputs), *dense) + rows_of(residual)
        return like(self.layer_norm(total, *norm, dtype=residual.dtype.name), residual)

    def self_attention(
        self, hidden: Any, projections: kernels.Projections, heads: int, mask: Any, draw: Draw
    ) -> Any:
        del draw
        batch, length, width = tf.shape(hidden)[0], tf.shape(hidden)[1], hidden.shape[2]
        rows, size = rows_of(hidden), width // heads

        def split_heads(dense: kernels.Dense, factor: float = 1.0) -> Any:
            parts = tf.reshape(self._affine(rows, *dense, factor), [batch, length, heads, size])
            return tf.transpose(parts, [0, 2, 1, 3])  # [batch, heads, length, size]

        query, key, value = projections
        query = split_heads(query, size**-0.5)  # the scores' factor costs nothing here
        scores = tf.matmul(query, split_heads(key), transpose_b=True)  # [batch, heads, from, to]
        # oneDNN's softmax computes in float32, whatever the type of its input.
        probabilities = tf.nn.softmax(scores + tf.cast(mask, scores.dtype))
        value = split_heads(value)
        context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])
        return tf.reshape(context, [batch, length, width])

    def _affine(self, rows: Any, kernel: Any, bias: Any, factor: float = 1.0) -> Any:
        dtype, change = rows.dtype, None
        if isinstance(kernel, kernels.LowRank):  # which is less work than one matrix of its own
            change = tf.matmul(rows, self._prepared(kernel.a, dtype))
            factor_of_b = factor * kernel.scale
            change = tf.matmul(change, self._prepared(kernel.b, dtype, factor_of_b))
            kernel = kernel.kernel
        products = tf.matmul(rows, self._prepared(kernel, dtype, factor))
        products = tf.nn.bias_add(products, self._prepared(bias, dtype, factor))
        return products if change is None else products + change

    def _prepared(self, weight: Any, dtype: Any, factor: float = 1.0) -> Any:
        """A variable's present value, times a factor, cast once; the traced graph keeps it."""

        def make() -> Any:
            # An eager tensor becomes an input of the graph, not a constant in it: constants are
            # copied many times over while a graph is made, and oneDNN multiplies no faster by them.
            with tf.init_scope():
                return tf.cast(tf.convert_to_tensor(weight) * factor, dtype)

        return make() if self._shared is None else self._shared.kept(weight, (dtype, factor), make)


@compiled  # one pass over memory
def _layer_norm(rows: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
    return tf.cast(normalized(tf.cast(rows, tf.float32), gamma, beta, epsilon), dtype)
