"""A tagger over frozen layers: what learns, what it saves, and how others see its directory."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.feature_tagger import BertFeatureTagger, layer_name, layer_outputs
from keras_bert_impl.models.head_settings import FrozenFeatures, with_frozen_features
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.head_checks import check_outputs, check_saving
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

TEXT = TextSettings(VOCABULARY)
DROPPING = TINY.replace(num_hidden_layers=4, hidden_dropout_prob=0.5)


def make_model(name="weighted_all", config=TINY):
    return BertFeatureTagger(with_frozen_features(config, FrozenFeatures(name, 4)), num_labels=5)


def test_it_gives_float32_scores():
    check_outputs(make_model("last"), features(), {"logits": (2, 8, 5)})


def test_it_survives_saving_and_the_model_directory(tmp_path):
    check_saving(make_model, features(), tmp_path)


def test_only_the_head_learns():
    model = make_model()
    learns = {weight.path.split("/")[0] for weight in model.trainable_weights}
    assert learns == {"feature_tagger"}
    assert {id(x) for x in model.on_vectors.weights} == {id(x) for x in model.trainable_weights}


@pytest.mark.parametrize("name", ["embeddings", "weighted_last_four", "concat_last_four"])
def test_the_head_over_the_layers_gives_what_the_whole_model_gives(name):
    model, batch = scatter_weights(make_model(name, DROPPING)), features(config=DROPPING)
    inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
    layers = layer_outputs(model.encoder, model.layers_read)(inputs)
    vectors = np.stack([layers[layer_name(one)] for one in model.layers_read], axis=2)
    found = model.on_vectors({"layer_vectors": vectors, "input_mask": batch["input_mask"]})
    np.testing.assert_allclose(found["logits"], model(batch)["logits"], atol=1e-6)


def test_the_layers_are_those_of_the_encoder():
    encoder = scatter_weights(BertEncoder(TINY, return_all_layers=True))
    batch = {name: features()[name] for name in encoder.input}
    expected = encoder(batch)
    found = layer_outputs(encoder, (0, 1, 2))(batch)
    assert np.array_equal(found["layer_00"], expected["embedding_output"])
    assert np.array_equal(found["layer_01"], expected["all_encoder_layers"][0])
    assert np.array_equal(found["layer_02"], expected["sequence_output"])


def test_the_encoder_drops_nothing_in_training():
    config = TINY.replace(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.0)
    model, batch = scatter_weights(make_model("last", config)), features()
    assert np.array_equal(model(batch, training=True)["logits"], model(batch)["logits"])


def test_a_configuration_without_features_is_refused():
    with pytest.raises(UserError, match="has no frozen_features"):
        BertFeatureTagger(TINY, num_labels=5)


def test_other_programs_are_told_in_a_sentence_what_it_is(tmp_path):
    make_model().save_pretrained(tmp_path / "model", TEXT)
    with pytest.raises(UserError, match="is a BertFeatureTagger, which cannot be opened here"):
        open_model(tmp_path / "model")


def test_it_is_opened_again_with_its_labels(tmp_path):
    model, batch = scatter_weights(make_model("last")), features()
    model.save_pretrained(tmp_path / "model", TEXT)
    again = BertFeatureTagger.from_pretrained(tmp_path / "model")
    assert again.labels == tuple(f"LABEL_{number}" for number in range(5))
    assert np.array_equal(again(batch)["logits"], model(batch)["logits"])
