import functools

import keras
import numpy as np
import pytest

from keras_bert_impl.layers.dropout import Draw, address_keys
from keras_bert_impl.layers.flash_kernels import FlashKernels
from keras_bert_impl.layers.gpu_norm import fits
from keras_bert_impl.layers.kernels import PLAIN

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="it is for JAX")

NOTHING, HALF = Draw(None, 0), Draw(address_keys([1, 2, 3, 4]), 2**31)


@pytest.mark.parametrize(("width", "rows", "draw"), [(128, 32, NOTHING), (384, 21, HALF)])
def test_the_end_of_half_a_block_is_and_learns_what_it_does_with_plain_kernels(
    monkeypatch, width, rows, draw
):
    import jax
    import jax.numpy as jnp

    # In float32: what is left between the two is the order of sums.
    monkeypatch.setattr("keras_bert_impl.layers.gpu_norm.fits", lambda *_: True)
    inputs, residual, goal = (
        jnp.asarray(np.random.default_rng(seed).standard_normal([rows, 1, size]), "float32")
        for seed, size in enumerate([16, width, width])
    )
    vectors = np.random.default_rng(3).standard_normal([3, width]).astype("float32")

    def loss(kernels, inputs, kernel, vectors, residual):
        norm = (vectors[1], vectors[2], 1e-12)
        found = kernels.dense_add_norm(inputs, (kernel, vectors[0]), residual, norm, draw)
        return (found * goal).sum()

    matrix = np.random.default_rng(4).standard_normal([16, width]).astype("float32")
    weights = inputs, jnp.asarray(matrix), jnp.asarray(vectors), residual
    found, expected = (
        jax.jit(jax.value_and_grad(functools.partial(loss, kernels), (0, 1, 2, 3)))(*weights)
        for kernels in (FlashKernels("xla"), PLAIN)
    )
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4), found, expected
    )


def test_it_is_for_rows_of_16_bits_that_a_warp_can_hold():
    found = [fits(*one) for one in ((768, "bfloat16"), (768, "float32"), (2048, "float16"))]
    assert found == [True, False, False]
