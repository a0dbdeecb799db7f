import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.layers.bilstm import BiLstm, FinalStates, LastToken
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

SEQUENCE = np.random.default_rng(0).standard_normal([2, 5, TINY.hidden_size]).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


def built():
    layer = BiLstm(TINY, name="bilstm")
    layer(SEQUENCE, INPUT_MASK)
    return scatter_weights(layer)


def states(weights, rows):
    """One direction, a step after the other; the gates are input, forget, cell and output."""
    hidden = cell = np.zeros(TINY.hidden_size // 2)
    found = []
    for row in rows:
        gates = row @ weights["kernel"] + hidden @ weights["recurrent_kernel"] + weights["bias"]
        enter, forget, new, leave = np.split(gates, 4)
        cell = cell / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-enter))
        hidden = np.tanh(cell) / (1 + np.exp(-leave))
        found.append(hidden)
    return np.array(found)


def test_each_direction_is_the_formula_and_padding_is_no_step():
    layer = built()
    found, weights = as_float64(layer(SEQUENCE, INPUT_MASK)), weights_of(layer)
    for row, length in enumerate(INPUT_MASK.sum(axis=1)):
        tokens = SEQUENCE[row, :length].astype("float64")
        directions = [
            {path.rsplit("/", 1)[1]: w for path, w in weights.items() if path.startswith(name)}
            for name in ("forward/", "backward/")
        ]
        ahead, back = states(directions[0], tokens), states(directions[1], tokens[::-1])[::-1]
        expected = np.concatenate([ahead, back], axis=-1)
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


def test_final_states_have_seen_the_whole_row_from_both_sides():
    sequence = as_float64(built()(SEQUENCE, INPUT_MASK)).astype("float32")
    half, last = TINY.hidden_size // 2, INPUT_MASK.sum(axis=1) - 1
    found = as_float64(FinalStates()(sequence, INPUT_MASK))[:, 0]
    np.testing.assert_array_equal(found[:, :half], sequence[[0, 1], last, :half])
    np.testing.assert_array_equal(found[:, half:], sequence[:, 0, half:])
    np.testing.assert_array_equal(
        as_float64(LastToken()(sequence, INPUT_MASK))[:, 0], sequence[[0, 1], last]
    )


def test_they_are_layers_of_keras():
    check_layer(built(), SEQUENCE, INPUT_MASK)
    for layer in (LastToken(name="last"), FinalStates(name="final")):
        check_layer(layer, SEQUENCE, INPUT_MASK)


def test_an_odd_width_cannot_be_halved():
    with pytest.raises(UserError, match="hidden_size 15 is odd"):
        BiLstm(TINY.replace(hidden_size=15, num_attention_heads=1))
