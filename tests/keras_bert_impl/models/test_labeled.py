import logging

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.task_settings import task_settings, with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.labeled import with_labels
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import (
    WORD_VOCABULARY,
    tiny_config,
    write_classifier,
    write_encoder,
)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("labels") / "model", ["no", "maybe", "yes"])


def test_labels_may_be_given_new_names(classifier, tmp_path):
    model = BertClassifier.from_pretrained(classifier, labels=["0", "1", "2"])
    model.save_pretrained(tmp_path / "renamed")
    again = BertClassifier.from_pretrained(tmp_path / "renamed")
    assert again.labels == ("0", "1", "2")
    np.testing.assert_array_equal(*(np.array(m.classifier.projection.bias) for m in (model, again)))


@pytest.mark.parametrize(
    ("kind", "options"),
    [(BertTokenClassifier, {"num_labels": 2}), (BertClassifier, {"labels": ["ham", "spam"]})],
)
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


def trained_for_another_task(folder):
    extra = {"problem_type": "multi_label_classification", "finetuning": "kept"}
    config = tiny_config(extra=extra)
    config = with_labels(with_task_settings(config, {"task": "MNLI"}), ["no", "maybe", "yes"])
    text = TextSettings(WORD_VOCABULARY)
    BertClassifier(config, num_labels=3).save_pretrained(folder, text)
    return folder


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BertClassifier, {"labels": ["x", "y", "z"]}),
        (BertTokenClassifier, {"num_labels": 2}),
    ],
)
def test_other_labels_keep_no_settings_of_the_old_task(kind, options, tmp_path):
    model = kind.from_pretrained(trained_for_another_task(tmp_path / "old"), **options)
    model.save_pretrained(tmp_path / "new")
    config = find_model(tmp_path / "new").config
    assert task_settings(config) == {}
    assert "problem_type" not in config.extra
    assert set(config.extra["id2label"].values()) == set(model.labels)
    assert config.extra["finetuning"] == "kept"


def test_the_same_labels_in_another_order_are_logged_with_one_line(tmp_path, caplog):
    folder = trained_for_another_task(tmp_path / "old")
    model = BertClassifier.from_pretrained(folder, labels=["yes", "maybe", "no"])
    [line] = [record.getMessage() for record in caplog.records]
    assert "in another order; its trained head gives them as no, maybe, yes" in line
    assert task_settings(model.config) == {"task": "MNLI"}
    caplog.clear()
    BertClassifier.from_pretrained(folder, labels=["no", "maybe", "yes"])
    assert caplog.records == []


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [("abc", "labels='abc' is one text; give a list"), (["a", "b", "a"], "labels has 'a' twice")],
)
def test_labels_that_are_no_list_of_names_are_refused(classifier, labels, sentence):
    with pytest.raises(UserError, match=sentence):
        BertClassifier.from_pretrained(classifier, labels=labels)


def test_a_model_without_labels_must_be_told(tmp_path):
    folder = write_encoder(tmp_path / "model")
    with pytest.raises(UserError, match="has no labels; give num_labels, or labels with their"):
        BertClassifier.from_pretrained(folder)
    assert BertClassifier.from_pretrained(folder, num_labels=4).num_labels == 4


def test_two_numbers_of_labels_contradict_each_other(classifier):
    with pytest.raises(UserError, match="there are 2 labels, but num_labels=3"):
        BertClassifier.from_pretrained(classifier, labels=["a", "b"], num_labels=3)
