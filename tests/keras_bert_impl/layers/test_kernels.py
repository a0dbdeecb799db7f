import numpy as np
import pytest

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels, joined


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
