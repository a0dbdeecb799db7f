import logging

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_classifier import BertTokenClassifier
from tests.support.model_folders import write_classifier, write_encoder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("labels") / "model", ["no", "maybe", "yes"])


def test_a_classifier_brings_its_labels(classifier):
    model = BertClassifier.from_pretrained(classifier)
    assert model.num_labels == 3
    assert model.labels == ("no", "maybe", "yes")


def test_labels_may_be_given_new_names(classifier, tmp_path):
    model = BertClassifier.from_pretrained(classifier, labels=["0", "1", "2"])
    model.save_pretrained(tmp_path / "renamed")
    again = BertClassifier.from_pretrained(tmp_path / "renamed")
    assert again.labels == ("0", "1", "2")
    np.testing.assert_array_equal(*(np.array(m.classifier.projection.bias) for m in (model, again)))


@pytest.mark.parametrize("options", [{"num_labels": 2}, {"labels": ["ham", "spam"]}])
@pytest.mark.parametrize("kind", [BertClassifier, BertTokenClassifier])
def test_another_number_of_labels_gets_a_new_head_on_the_same_encoder(
    classifier, kind, options, caplog
):
    with caplog.at_level(logging.WARNING):
        model = kind.from_pretrained(classifier, **options)
    assert "no weights for these parts" in caplog.text
    assert model.labels == tuple(options.get("labels", ("LABEL_0", "LABEL_1")))
    whole = BertClassifier.from_pretrained(classifier)
    np.testing.assert_array_equal(
        np.array(model.encoder.embeddings.token_table),
        np.array(whole.encoder.embeddings.token_table),
    )


def test_a_model_without_labels_must_be_told(tmp_path):
    folder = write_encoder(tmp_path / "model")
    with pytest.raises(UserError, match="has no labels; give num_labels, or labels with their"):
        BertClassifier.from_pretrained(folder)
    assert BertClassifier.from_pretrained(folder, num_labels=4).num_labels == 4


def test_two_numbers_of_labels_contradict_each_other(classifier):
    with pytest.raises(UserError, match="there are 2 labels, but num_labels=3"):
        BertClassifier.from_pretrained(classifier, labels=["a", "b"], num_labels=3)
