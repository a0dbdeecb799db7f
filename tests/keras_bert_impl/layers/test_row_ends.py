import numpy as np

from keras_bert_impl.layers.heads import FinalStates, LastToken
from tests.support.layer_checks import as_float64, check_layer

SEQUENCE = np.random.default_rng(0).standard_normal([2, 5, 6]).astype("float32")
INPUT_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")


def test_the_last_token_is_the_one_before_the_padding():
    found = as_float64(LastToken()(SEQUENCE, INPUT_MASK))
    np.testing.assert_array_equal(found[:, 0], SEQUENCE[[0, 1], [4, 2]])


def test_final_states_have_seen_the_whole_row_from_both_sides():
    found = as_float64(FinalStates()(SEQUENCE, INPUT_MASK))[:, 0]
    np.testing.assert_array_equal(found[:, :3], SEQUENCE[[0, 1], [4, 2], :3])
    np.testing.assert_array_equal(found[:, 3:], SEQUENCE[:, 0, 3:])


def test_they_are_layers_of_keras():
    for layer in (LastToken(name="last"), FinalStates(name="final")):
        check_layer(layer, SEQUENCE, INPUT_MASK)
