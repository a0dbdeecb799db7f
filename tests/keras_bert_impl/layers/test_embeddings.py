import numpy as np
import pytest

from keras_bert_impl.layers.encoder_block import BertEmbeddings
from tests.support.layer_checks import as_float64, check_layer, normalized, weights_of
from tests.support.tiny_bert import TINY, scatter_weights

DRAW = np.random.default_rng(0)
IDS = DRAW.integers(0, TINY.vocab_size, [2, 7]).astype("int32")
SEGMENTS = DRAW.integers(0, 2, [2, 7]).astype("int32")


def built(config=TINY, **options):
    layer = BertEmbeddings(config, name="embeddings", **options)
    layer(IDS, SEGMENTS)
    return scatter_weights(layer)


def expected(layer, ids, segments):
    weights = weights_of(layer)
    total = (
        weights["token_embeddings"][ids]
        + weights["position_embeddings"][: ids.shape[1]]
        + weights["segment_embeddings"][segments]
    )
    gamma, beta = weights["layer_norm/gamma"], weights["layer_norm/beta"]
    return normalized(total, gamma, beta, layer.config.layer_norm_eps)


@pytest.mark.parametrize("length", [1, 7])
def test_it_is_the_normalized_sum_of_three_tables(length):
    layer, ids, segments = built(), IDS[:, :length], SEGMENTS[:, :length]
    found = as_float64(layer(ids, segments))
    np.testing.assert_allclose(found, expected(layer, ids, segments), atol=1e-5)


def test_more_than_two_kinds_of_segments_are_told_apart():
    layer, segments = built(TINY.replace(type_vocab_size=4)), SEGMENTS + 2
    found = as_float64(layer(IDS, segments))
    np.testing.assert_allclose(found, expected(layer, IDS, segments), atol=1e-5)


def test_it_drops_in_training_only():
    layer = built(TINY.replace(hidden_dropout_prob=0.5))
    assert (as_float64(layer(IDS, SEGMENTS)) != 0).all()
    assert 0.3 < (as_float64(layer(IDS, SEGMENTS, training=True)) == 0).mean() < 0.7


def test_it_is_a_layer_of_keras():
    check_layer(built(), IDS, SEGMENTS)
