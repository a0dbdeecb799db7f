import numpy as np
import pytest

from keras_bert_impl.layers.encoder_block import AttentionMask, SelfAttention, attention_mask
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

HIDDEN = np.random.default_rng(0).standard_normal([2, 5, TINY.hidden_size]).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


def built(config=TINY):
    layer = SelfAttention(config, block=0, name="attention")
    layer(HIDDEN, np.array(attention_mask(INPUT_MASK, causal=False)))
    return scatter_weights(layer)


def attended(weights, hidden, seen):
    """Each head, row and position on its own, from the paper; `seen` [batch, from, to]."""
    query, key, value = (
        hidden @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
        for name in ("query", "key", "value")
    )
    size = hidden.shape[-1] // TINY.num_attention_heads
    outputs = np.zeros_like(hidden)
    for row, position in np.ndindex(hidden.shape[:2]):
        for head in range(TINY.num_attention_heads):
            own = slice(head * size, (head + 1) * size)
            scores = key[row, :, own] @ query[row, position, own] / np.sqrt(size)
            powers = np.exp(scores) * seen[row, position]
            outputs[row, position, own] = powers / powers.sum() @ value[row, :, own]
    return outputs


BOTH, LEFT_TO_RIGHT, RIGHT_TO_LEFT = (False, False), (True, False), (False, True)
EVERY_DIRECTION = pytest.mark.parametrize("direction", [BOTH, LEFT_TO_RIGHT, RIGHT_TO_LEFT])


@EVERY_DIRECTION
def test_it_is_the_formula_and_hidden_positions_do_not_count(direction):
    layer = built()
    found = as_float64(layer(HIDDEN, np.array(attention_mask(INPUT_MASK, *direction))))
    seen = np.repeat(INPUT_MASK[:, None], 5, axis=1)
    order = np.arange(5)
    if direction == LEFT_TO_RIGHT:
        seen = seen * (order[None, :] <= order[:, None])
    if direction == RIGHT_TO_LEFT:
        seen = seen * (order[None, :] >= order[:, None])
    tokens = INPUT_MASK.astype(bool)  # padding may see nothing at all, and nothing sees it
    expected = attended(weights_of(layer), HIDDEN.astype("float64"), np.maximum(seen, np.eye(5)))
    np.testing.assert_allclose(found[tokens], expected[tokens], atol=1e-5)


@EVERY_DIRECTION
def test_the_mask_as_a_layer_is_the_same(direction):
    layer = AttentionMask(*direction)
    check_layer(layer, INPUT_MASK)
    assert np.array_equal(np.array(layer(INPUT_MASK)), attention_mask(INPUT_MASK, *direction))


def test_probabilities_are_dropped_in_training_only():
    layer = built(TINY.replace(attention_probs_dropout_prob=0.5))
    mask = np.array(attention_mask(INPUT_MASK, causal=False))
    still = as_float64(layer(HIDDEN, mask))
    assert not np.array_equal(still, as_float64(layer(HIDDEN, mask, training=True)))


def test_it_is_a_layer_of_keras():
    check_layer(built(), HIDDEN, np.array(attention_mask(INPUT_MASK, causal=False)))
