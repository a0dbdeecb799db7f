import numpy as np
import pytest

from keras_bert_impl.models.attention import attention_probabilities
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from tests.support.model_folders import tiny_config, write_encoder
from tests.support.numpy_bert import NumpyBert
from tests.support.tiny_bert import TINY, features, scatter_weights


def batch_of(config, length=8):
    made = features(length=length, config=config)
    return {name: made[name] for name in ENCODER_INPUTS}


@pytest.mark.parametrize("changes", [{}, {"causal": True}], ids=str)
def test_probabilities_are_those_of_an_independent_bert(tmp_path, changes):
    folder = write_encoder(tmp_path / "model", **changes)
    batch = batch_of(tiny_config())
    reference = NumpyBert(folder)
    reference.encode(*batch.values())
    ours = attention_probabilities(BertEncoder.from_pretrained(folder), batch)
    from_a_token = np.broadcast_to(batch["input_mask"][:, None, :, None], ours.shape[1:]) > 0
    for layer, theirs in zip(ours, reference.attention, strict=True):
        assert np.abs(layer - theirs)[from_a_token].max() < 1e-6


def test_each_token_gives_shares_that_add_up_and_none_to_padding():
    encoder = scatter_weights(BertEncoder(TINY))
    shares = attention_probabilities(encoder, batch_of(TINY))
    assert shares.shape == (2, 2, 2, 8, 8)
    assert np.abs(shares.sum(axis=-1) - 1).max() < 1e-6
    assert (shares[:, 0, :, :, -2:] == 0).all()  # the last two positions of row 0 are padding


def test_a_model_with_a_head_has_those_of_its_encoder():
    classifier = scatter_weights(BertClassifier(TINY, 3))
    shares = attention_probabilities(classifier, batch_of(TINY))
    assert np.array_equal(shares, attention_probabilities(classifier.encoder, batch_of(TINY)))


def test_recording_changes_neither_the_outputs_nor_the_models_kernels():
    encoder = scatter_weights(BertEncoder(TINY))
    before, own = encoder(batch_of(TINY))["sequence_output"], encoder.kernels
    attention_probabilities(encoder, batch_of(TINY))
    assert encoder.kernels is own
    assert np.array_equal(before, encoder(batch_of(TINY))["sequence_output"])
