"""The computations of a model in the forms that other engines know as one operation."""

from typing import Any

from keras import ops

from keras_bert_impl.layers.kernels import PlainKernels

_ONE_OVER_SQRT_2 = 0.7071067811865476


class PortableKernels(PlainKernels):
    """Same results as `PlainKernels` but for rounding, and no gradients of their own.

    Engines that read a graph look for patterns: LayerNorm as a division by a square root of the
    mean of second powers, the exact GELU as `x / 2 * (1 + erf(x / sqrt(2)))`. TensorFlow writes
    the first with rsqrt and the second with erfc, which are computed piece by piece elsewhere, and
    which ONNX does not know.
    """

    name = "portable"

    def dense(self, inputs: Any, kernel: Any, bias: Any, activation: str) -> Any:
        """See `PlainKernels.dense`."""
        if activation != "gelu_erf":
            return super().dense(inputs, kernel, bias, activation)
        products = super().dense(inputs, kernel, bias, "linear")
        numbers = ops.cast(products, "float32")
        errors = ops.erf(ops.multiply(numbers, _ONE_OVER_SQRT_2))
        outputs = ops.multiply(ops.multiply(numbers, 0.5), ops.add(errors, 1.0))
        return ops.cast(outputs, products.dtype)

    def layer_norm(self, inputs: Any, gamma: Any, beta: Any, epsilon: float, dtype: str) -> Any:
        """See `PlainKernels.layer_norm`."""
        numbers = ops.cast(inputs, "float32")
        # A list of axes: OpenVINO's pattern fails at a single one.
        centered = ops.subtract(numbers, ops.mean(numbers, axis=(-1,), keepdims=True))
        variance = ops.mean(ops.power(centered, 2.0), axis=(-1,), keepdims=True)
        scaled = ops.divide(centered, ops.sqrt(ops.add(variance, epsilon)))
        gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
        return ops.cast(ops.add(ops.multiply(scaled, gamma), beta), dtype)
