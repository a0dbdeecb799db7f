import numpy as np
import pytest

from keras_bert_impl.layers.bilstm import FeatureTagger
from tests.support.layer_checks import as_float64, check_layer, weights_of
from tests.support.numpy_lstm import bilstm
from tests.support.tiny_bert import TINY, scatter_weights

LENGTHS = [6, 4]
VECTORS = np.random.default_rng(0).standard_normal([2, 6, 3, TINY.hidden_size]).astype("float32")
MASK = (np.arange(6) < np.array(LENGTHS)[:, None]).astype("int32")


def built(mixes, **changes):
    layer = FeatureTagger(TINY.replace(**changes), 5, 4, mixes, name="feature_tagger")
    layer(VECTORS, MASK)
    return scatter_weights(layer)


@pytest.mark.parametrize("mixes", [True, False])
def test_layers_are_mixed_or_joined_then_read_by_the_lstms_and_scored(mixes):
    layer = built(mixes)
    weights = weights_of(layer)
    if mixes:
        shares = np.exp(weights["mix/scalars"])
        weighted = np.einsum("blkh,k->blh", VECTORS, shares / shares.sum())
        joined = weights["mix/gamma"] * weighted
    else:
        joined = VECTORS.reshape(2, 6, -1).astype(np.float64)
    lstms = {name.removeprefix("lstm/"): value for name, value in weights.items()}
    states = bilstm(joined, LENGTHS, lstms)
    expected = states @ weights["logits/dense/kernel"] + weights["logits/dense/bias"]
    shown = MASK[..., None]
    np.testing.assert_allclose(
        as_float64(layer(VECTORS, MASK)) * shown, expected * shown, atol=1e-5
    )


def test_it_is_a_layer_of_keras():
    check_layer(built(True, hidden_dropout_prob=0.0), VECTORS, MASK)
