"""A tagger over frozen layers: what learns, what it saves, and how others see its directory."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import FrozenFeatures, with_frozen_features
from keras_bert_impl.models.token_models import BertFeatureTagger
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

TEXT = TextSettings(VOCABULARY)


def make_model(name="weighted_all", config=TINY):
    return BertFeatureTagger(with_frozen_features(config, FrozenFeatures(name, 4)), num_labels=5)


def test_only_the_head_learns():
    model = make_model()
    learns = {weight.path.split("/")[0] for weight in model.trainable_weights}
    assert learns == {"feature_tagger"}


@pytest.mark.parametrize("name", ["embeddings", "concat_last_four"])
def test_the_head_reads_the_layers_that_are_named(name):
    config = TINY.replace(num_hidden_layers=4)
    model, batch = scatter_weights(make_model(name, config)), features(config=config)
    found = model.encoder({name: batch[name] for name in model.encoder.input})
    blocks = [found["embedding_output"], *found["all_encoder_layers"]]
    layers = np.stack([blocks[one] for one in FrozenFeatures(name).layers(4)], axis=2)
    logits = model.feature_tagger(layers, batch["input_mask"])
    np.testing.assert_allclose(logits, model(batch)["logits"], atol=1e-6)


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
