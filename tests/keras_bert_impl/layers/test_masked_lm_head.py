import math

import keras
import numpy as np

from keras_bert_impl.layers.heads import MaskedLmHead
from tests.support.layer_checks import as_float64, check_layer, normalized, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

DRAW = np.random.default_rng(0)
SEQUENCE = DRAW.standard_normal([2, 6, TINY.hidden_size]).astype("float32")
TABLE = DRAW.standard_normal([TINY.vocab_size, TINY.hidden_size]).astype("float32")
POSITIONS = np.array([[1, 4, 0], [5, 5, 2]], "int32")
GELU = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


def built(**options):
    head = MaskedLmHead(TINY.replace(hidden_act="gelu_erf"), name="masked_lm", **options)
    head(SEQUENCE, POSITIONS, TABLE)
    return scatter_weights(head)


def test_it_is_the_formula_at_the_masked_positions():
    head = built()
    weights = weights_of(head)
    hidden = np.stack([SEQUENCE[row, POSITIONS[row]] for row in range(2)]).astype("float64")
    hidden = GELU(hidden @ weights["transform/kernel"] + weights["transform/bias"])
    gamma, beta = weights["layer_norm/gamma"], weights["layer_norm/beta"]
    hidden = normalized(hidden, gamma, beta, TINY.layer_norm_eps)
    expected = hidden @ TABLE.T + weights["output_bias"]
    found = as_float64(head(SEQUENCE, POSITIONS, TABLE))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scores_are_float32_in_bfloat16_as_well():
    outputs = built(dtype="mixed_bfloat16")(SEQUENCE, POSITIONS, TABLE)
    assert keras.backend.standardize_dtype(outputs.dtype) == "float32"


def test_it_is_a_layer_of_keras():
    check_layer(built(), SEQUENCE, POSITIONS, TABLE)
