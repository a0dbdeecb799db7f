"""float16 and bfloat16: what must be computed in float32 is, and training stays finite."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.base import LayerNorm
from keras_bert_impl.layers.dropout import Draw
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.gradients import gradients_of_pretraining_loss
from tests.support.tiny_bert import TINY, features, scatter_weights

NOTHING = Draw(None, 0)


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 0.02), ("bfloat16", 0.15)])
def test_outputs_are_float32_and_near_those_of_float32(dtype, bound):
    exact = scatter_weights(BertPretrainer(TINY))(features())
    outputs = scatter_weights(BertPretrainer(TINY, dtype=f"mixed_{dtype}"))(features())
    for name, value in outputs.items():
        assert keras.backend.standardize_dtype(value.dtype) == "float32"
        assert 0 < np.abs(np.array(value) - np.array(exact[name])).max() < bound, name


def test_gradients_are_float32_finite_and_near_those_of_float32():
    address = [1, 2, 3, 4]  # the same draws of dropout
    exact = gradients_of_pretraining_loss(
        scatter_weights(BertPretrainer(TINY)), features(), address
    )
    model = scatter_weights(BertPretrainer(TINY, dtype="mixed_float16"))
    for path, gradient in gradients_of_pretraining_loss(model, features(), address).items():
        assert gradient.dtype == np.float32
        size = np.linalg.norm(exact[path]) + 1e-2  # a key's bias has no gradient but rounding
        assert np.linalg.norm(gradient - exact[path]) < 0.15 * size, path


def test_layer_norm_squares_beyond_float16():
    numbers = np.array([[1000.0, -1000.0, 3000.0, 500.0]], np.float16)  # squares reach 9e6
    exact = numbers.astype(np.float64) - numbers.astype(np.float64).mean()
    exact /= np.sqrt((exact**2).mean())
    norm = LayerNorm(1e-12, dtype="mixed_float16")
    assert np.abs(np.array(norm(numbers), np.float64) - exact).max() < 2e-3


def test_a_residual_is_added_beyond_float16():
    large = ops.convert_to_tensor(np.array([[60000.0, -60000.0]], np.float16))
    norm = (np.ones(2, np.float32), np.zeros(2, np.float32), 1e-12)
    same = (np.eye(2, dtype=np.float16), np.zeros(2, np.float16))
    # 120000 is no float16.
    result = kernels.PLAIN.dense_add_norm(large, same, large, norm, NOTHING)
    assert np.array(result).tolist() == [[1.0, -1.0]]


def test_softmax_adds_up_in_float32():
    scores = ops.zeros([1, 1, 1, 4096], dtype="float16")
    mask = ops.zeros([1, 1, 1, 1], dtype="float32")
    shares = np.array(kernels.PLAIN.attention_probabilities(scores, 64, mask, NOTHING))
    assert shares.dtype == np.float16
    assert abs(shares.astype(np.float64).sum() - 1.0) < 1e-3


def test_padding_is_hidden_in_float16_as_well():
    model = scatter_weights(BertPretrainer(TINY, dtype="mixed_float16"))
    batch = features()
    before = np.array(model(batch)["next_sentence_logits"])
    batch["input_ids"][0, -2:] = 7  # behind the mask
    assert np.array_equal(before, np.array(model(batch)["next_sentence_logits"]))
