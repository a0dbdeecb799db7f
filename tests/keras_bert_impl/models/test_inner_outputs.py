import keras
import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.inner_outputs import attention_probabilities
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


def test_a_flag_of_the_call_gives_the_vectors_of_each_layer_and_the_attentions():
    classifier = scatter_weights(BertClassifier(TINY, 3))
    batch = batch_of(TINY)
    outputs = classifier(batch, output_hidden_states=True, output_attentions=True)
    deep = BertEncoder(TINY, return_all_layers=True)
    deep.set_weights(classifier.encoder.get_weights())
    wanted = deep(batch)
    layers = [wanted["embedding_output"], *wanted["all_encoder_layers"]]
    for found, layer in zip(outputs["hidden_states"], layers, strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(layer), rtol=0, atol=1e-6)
    shares = attention_probabilities(classifier, batch)
    np.testing.assert_array_equal(np.asarray(outputs["attentions"]), shares)
    np.testing.assert_array_equal(
        np.asarray(outputs["logits"]), np.asarray(classifier(batch)["logits"])
    )


def test_vectors_instead_of_ids_are_refused():
    with pytest.raises(UserError, match="inputs_embeds: the models here take ids only"):
        BertEncoder(TINY)({"inputs_embeds": np.zeros([1, 4, 8])})


def test_outputs_of_inner_layers_are_not_of_symbolic_inputs():
    model = BertEncoder(TINY)
    with pytest.raises(UserError, match=r"make a BertEncoder\(config, return_all_layers=True\)"):
        model({"input_ids": keras.Input([None], dtype="int32")}, output_attentions=True)
