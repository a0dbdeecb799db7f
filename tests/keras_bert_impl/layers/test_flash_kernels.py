import keras
import ml_dtypes  # noqa: F401 - NumPy's bfloat16
import numpy as np
import pytest

from keras_bert_impl.layers.dropout import Draw, address_keys
from keras_bert_impl.layers.encoder_block import attention_mask
from keras_bert_impl.layers.flash_kernels import FlashKernels, _gelu
from keras_bert_impl.layers.kernels import PLAIN

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="they are for JAX")

FLASH = FlashKernels("xla")  # cuDNN's needs a GPU
NOTHING = Draw(None, 0)
ROWS = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0]], "int32")


def numbers(*shape, dtype="bfloat16"):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def half_dropped():
    return Draw(address_keys([1, 2, 3, 4]), 2**31)


def dense(width, out):
    return numbers(width, out) * 0.3, numbers(out)


def attended(kernels, hidden, input_mask=ROWS, draw=NOTHING, causal=False):
    import jax
    import jax.numpy as jnp

    mask = attention_mask(input_mask, causal)
    compute = jax.jit(
        lambda hidden: kernels.self_attention(hidden, [dense(16, 16)] * 3, 2, mask, draw)
    )
    return np.asarray(compute(jnp.asarray(hidden)), "float32")


def test_tokens_gather_and_learn_what_they_do_with_plain_kernels():
    import jax

    hidden, tokens = numbers(3, 6, 16), ROWS[..., None]
    expected = attended(PLAIN, hidden.astype("float32"))
    found = attended(FLASH, hidden)
    np.testing.assert_allclose(found * tokens, expected * tokens, atol=0.03)
    assert np.isfinite(found).all()

    def loss_of(kernels):
        mask, goal = attention_mask(ROWS, causal=False), numbers(3, 6, 16)

        def loss(inputs):
            context = kernels.self_attention(inputs, [dense(16, 16)] * 3, 2, mask, NOTHING)
            return (context * goal * tokens).astype("float32").sum()

        return jax.jit(jax.grad(loss))(jax.numpy.asarray(hidden))

    np.testing.assert_allclose(loss_of(FLASH), loss_of(PLAIN), atol=0.1)


def test_padding_before_a_token_makes_its_batch_nan():
    rows = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 0, 0]], "int32")
    assert np.isnan(attended(FLASH, numbers(3, 6, 16), rows)).all()
    assert np.isnan(attended(FLASH, numbers(2, 6, 16), rows[:2])).all()
    assert np.isfinite(attended(FLASH, numbers(1, 6, 16), rows[:1])).all()


def test_gelu_and_its_gradient_are_right_to_float32_also_far_from_zero():
    import jax
    import jax.numpy as jnp

    x = np.concatenate([np.linspace(-12, 12, 4001), [-1e4, 1e4]])
    inputs = jnp.asarray(x, "float32")
    share = (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    np.testing.assert_allclose(_gelu(inputs), x * share, rtol=1e-6, atol=3e-6)
    slope = 2 * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    slopes = jax.grad(lambda x: _gelu(x).sum())(inputs)
    np.testing.assert_allclose(slopes, share * (1 + x * (1 - share) * slope), atol=3e-6)


@pytest.mark.parametrize(
    ("dtype", "more"),
    [("float32", {}), ("bfloat16", {"causal": True}), ("bfloat16", {"draw": half_dropped()})],
    ids=["float32", "one direction", "dropped probabilities"],
)
def test_what_it_cannot_compute_is_left_to_the_plain_attention(dtype, more):
    hidden = numbers(3, 6, 16, dtype=dtype)
    rounding = 1e-5 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(
        attended(FLASH, hidden, **more), attended(PLAIN, hidden, **more), atol=rounding
    )


def test_rows_give_what_the_plain_kernels_give_of_three_axes():
    import jax.numpy as jnp

    inputs, residual = jnp.asarray(numbers(3, 6, 16)), jnp.asarray(numbers(3, 6, 4))
    norm = (*numbers(2, 4, dtype="float32"), 1e-12)
    for name, arguments in {
        "dense": (inputs, *dense(16, 4), "gelu_tanh"),
        "dense_add_norm": (inputs, dense(16, 4), residual, norm, half_dropped()),
        "layer_norm": (residual, *norm, "bfloat16"),
        "decode": (inputs, numbers(5, 16)),
    }.items():
        found, expected = (getattr(kernels, name)(*arguments) for kernels in (FLASH, PLAIN))
        np.testing.assert_allclose(found, expected, atol=2e-2, err_msg=name)
        assert found.shape == expected.shape
