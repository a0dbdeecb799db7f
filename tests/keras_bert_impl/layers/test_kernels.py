import numpy as np
import pytest
from keras import ops

from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels, joined
from tests.support.tiny_bert import one_matrix


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


def low_rank(draw, scale, width=4):
    kernel, a, b = (draw.normal(size=size) for size in ([width] * 2, [width, 3], [3, width]))
    return kernels.LowRank(*(one.astype("float32") for one in (kernel, a, b)), scale)


def test_joined_projections_with_adapters_give_what_each_gives():
    draw = np.random.default_rng(0)
    inputs, bias = draw.normal(size=[2, 5, 4]).astype("float32"), np.zeros([4], "float32")
    matrices = (low_rank(draw, 0.5), low_rank(draw, 1.0).kernel, low_rank(draw, 2.0))
    projections = tuple((one, bias) for one in matrices)
    together = np.array(PLAIN.dense(inputs, *joined(projections), "linear"))
    apart = [inputs @ np.array(one_matrix(one)) for one in matrices]
    np.testing.assert_allclose(together, np.concatenate(apart, axis=-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chosen", [PLAIN, TrainingKernels()])
def test_an_adapter_loses_less_in_bfloat16_than_what_is_merged(chosen):
    draw = np.random.default_rng(0)
    inputs = ops.cast(draw.normal(size=[128, 256]), "bfloat16")
    *matrices, scale = low_rank(draw, 2e-3, 256)  # a layer's call casts its weights
    one = kernels.LowRank(*(ops.cast(part, "bfloat16") for part in matrices), scale)
    adapted, merged, base = (
        np.array(ops.cast(chosen.dense(inputs, kernel, np.zeros([256]), "linear"), "float32"))
        for kernel in (one, one_matrix(one), one.kernel)
    )
    x, a, b = (np.array(ops.cast(part, "float32")) for part in (inputs, one.a, one.b))
    lost = [np.linalg.norm(found - base - scale * x @ a @ b) for found in (adapted, merged)]
    assert lost[0] < 0.75 * lost[1]
