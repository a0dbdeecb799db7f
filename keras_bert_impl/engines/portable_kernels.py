"""The computations of a model in the forms that other engines know as one operation."""

from typing import Any

from keras import ops

from keras_bert_impl.layers.kernels import PlainKernels

_ONE_OVER_SQRT_2 = 0.7071067811865476
_MANY = 64


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


class OpenVinoKernels(PortableKernels):
    """`PortableKernels` whose heads OpenVINO computes in float32 at every precision.

    Asked for bfloat16, it computes all matrix products so, a head's too, and what stands behind
    the last product in float32. So a head is written as sums of products, which belong to that
    rest; but for one of 64 and more numbers a token, where that would cost time.
    """

    name = "openvino"

    def scores(self, inputs: Any, kernel: Any, bias: Any) -> Any:
        """See `PlainKernels.scores`."""
        units = kernel.shape[-1]
        if len(inputs.shape) == 2:  # one vector a text
            return ops.add(ops.sum(ops.expand_dims(inputs, -1) * kernel, axis=-2), bias)
        if units >= _MANY:
            return super().scores(inputs, kernel, bias)
        # One after the other: all at once would be [batch, length, in, units] numbers.
        sums = [ops.sum(inputs * kernel[:, n], axis=-1, keepdims=True) for n in range(units)]
        return ops.add(ops.concatenate(sums, axis=-1), bias)
