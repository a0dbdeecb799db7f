import contextlib

import keras
import numpy as np
import pytest

from keras_bert_impl.layers import dropout
from keras_bert_impl.layers.encoder_block import EncoderBlock
from tests.support.tiny_bert import TINY, scatter_weights

DRAW = np.random.default_rng(0)
HIDDEN, WEIGHTS = DRAW.standard_normal([2, 2, 6, TINY.hidden_size]).astype(np.float32)
MASK = np.zeros([2, 1, 1, 6], np.float32)


def outputs_and_gradient(block, keys=None):
    import tensorflow as tf

    @tf.function
    def compute():
        hidden = tf.constant(HIDDEN)
        place = contextlib.nullcontext() if keys is None else dropout.at_keys(keys)
        with place, tf.GradientTape() as tape:
            tape.watch(hidden)
            outputs = block(hidden, MASK, training=True)
            loss = tf.reduce_sum(outputs * WEIGHTS)
        return outputs, tape.gradient(loss, hidden)

    return [np.array(value) for value in compute()]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients")
@pytest.mark.parametrize(("hidden_rate", "attention_rate"), [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5)])
def test_recomputation_without_an_address_drops_the_same_numbers_again(hidden_rate, attention_rate):
    rates = {"hidden_dropout_prob": hidden_rate, "attention_probs_dropout_prob": attention_rate}
    block = EncoderBlock(TINY.replace(**rates), block=0, recompute=True)
    block(HIDDEN, MASK)
    scatter_weights(block)
    active = block.output_dropout if hidden_rate else block.attention.dropout
    start = np.array(active.seed_generator.state)
    found = outputs_and_gradient(block)

    active.seed_generator.state.assign(start)
    block.recompute = False
    expected = outputs_and_gradient(block, active.fresh_keys())
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-5)
