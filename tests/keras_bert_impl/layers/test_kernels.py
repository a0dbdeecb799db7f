import threading

import numpy as np
import pytest
from keras import ops

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels, activate, joined


def test_use_puts_the_former_kernels_back():
    chosen = PlainKernels()
    with kernels.use(chosen):
        assert kernels.current() is chosen
    assert kernels.current() is PLAIN
    with pytest.raises(KeyError), kernels.use(chosen):
        raise KeyError
    assert kernels.current() is PLAIN


def test_the_outermost_decides():
    outer, inner = PlainKernels(), PlainKernels()
    with kernels.use_of_model(outer), kernels.use_of_model(inner):
        assert kernels.current() is outer
    with kernels.use_of_model(outer), kernels.use(inner):
        assert kernels.current() is inner
    assert kernels.current() is PLAIN


def test_threads_do_not_see_each_others_kernels():
    seen = []
    with kernels.use(PlainKernels()):
        thread = threading.Thread(target=lambda: seen.append(kernels.current()))
        thread.start()
        thread.join()
    assert seen == [PLAIN]


def test_joined_projections_give_what_each_gives():
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=[2, 5, 4]).astype("float32")
    projections = tuple(
        (draw.normal(size=[4, 4]).astype("float32"), draw.normal(size=[4]).astype("float32"))
        for _ in range(3)
    )
    together = np.array(PLAIN.dense(inputs, *joined(projections), "linear"))
    apart = [inputs @ kernel + bias for kernel, bias in projections]
    np.testing.assert_allclose(together, np.concatenate(apart, axis=-1), rtol=1e-5, atol=1e-6)


def test_layer_norm_is_computed_in_float32():
    rows = np.array([[1000.0, 1001.0, 1002.0, 1005.0]], np.float32)
    expected = (rows - rows.mean()) / rows.std() * 2 + 1
    gamma, beta = ops.full([4], 2.0), ops.ones([4])
    result = PLAIN.layer_norm(ops.cast(rows, "float32"), gamma, beta, 1e-12, "bfloat16")
    assert "bfloat16" in str(result.dtype)
    np.testing.assert_allclose(np.array(ops.cast(result, "float32")), expected, atol=0.02)


@pytest.mark.parametrize(
    ("name", "function"),
    [("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh), ("linear", lambda x: x)],
)
def test_an_activation_keeps_type_and_shape(name, function):
    inputs = np.linspace(-2, 2, 6, dtype=np.float32).reshape([2, 3])
    np.testing.assert_allclose(np.array(activate(inputs, name)), function(inputs), rtol=1e-6)
    assert "float16" in str(activate(inputs.astype("float16"), name).dtype)
