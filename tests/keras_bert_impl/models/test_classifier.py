import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.task_settings import task_settings, with_task_settings
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier, with_labels
from keras_bert_impl.models.head_settings import pooling_of
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import (
    WORD_VOCABULARY,
    tiny_config,
    write_classifier,
    write_encoder,
)
from tests.support.numpy_bert import NumpyBert
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

takes_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients"
)


def numpy_logits(folder, batch, pooling):
    """What the written weights give, in float64."""
    reference = NumpyBert(folder)
    inputs = [batch[name] for name in ("input_ids", "input_mask", "segment_ids")]
    sequence, mask = reference.encode(*inputs)[-1], batch["input_mask"][:, :, None]
    means = (sequence * mask).sum(1) / mask.sum(1)
    return reference.class_logits({"cls": sequence[:, 0], "mean": means}[pooling])


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_poolings_are_those_of_an_independent_model_and_kept(pooling, tmp_path):
    batch, model = features(batch=3), BertClassifier(TINY, num_labels=3, pooling=pooling)
    scatter_weights(model).save_pretrained(tmp_path / "model", TextSettings(VOCABULARY))
    expected = numpy_logits(tmp_path / "model", batch, pooling)
    again = BertClassifier.from_pretrained(tmp_path / "model")
    assert pooling_of(again.config) == pooling
    copied = BertClassifier.from_config(model.get_config())
    copied.set_weights(model.get_weights())
    for one in (model, again, copied):
        np.testing.assert_allclose(one(batch, training=False)["logits"], expected, atol=2e-5)
    if keras.backend.backend() == "tensorflow":
        fast = inference_function(model)(batch)["logits"]
        np.testing.assert_allclose(fast, expected, atol=2e-4)
    pooler = BertClassifier.from_pretrained(tmp_path / "model", pooling="pooler")
    assert np.abs(np.array(pooler(batch)["logits"]) - expected).max() > 1e-2


@pytest.mark.parametrize(("mean", "deviation"), [(1e6, 1.0), (1e-6, 1e-7)])
def test_a_regression_rounds_as_the_one_that_was_trained(mean, deviation, tmp_path):
    """A weight of numbers around 1e6 takes the digits from those that are added to it."""
    config = with_task_settings(TINY, {"label_units": [mean, deviation]})
    trained = scatter_weights(BertClassifier(config, 1))
    assert trained.label_units == (mean, deviation)
    trained.save_pretrained(tmp_path / "model", TextSettings(VOCABULARY))
    batch = features(batch=64)
    expected = np.array(trained(batch, training=False)["logits"])
    again = BertClassifier.from_pretrained(tmp_path / "model")
    step = max(np.spacing(np.float32(mean)), 1e-5 * deviation)
    for one in (again, open_model(tmp_path / "model").model):
        found = np.array(one(batch, training=False)["logits"])
        np.testing.assert_allclose(found, expected, rtol=0, atol=step)
        assert len(np.unique(found)) >= 0.9 * len(np.unique(expected))
    # What it holds is a model like any other.
    plain = NumpyBert(tmp_path / "model")
    inputs = [batch[name] for name in ("input_ids", "input_mask", "segment_ids")]
    logits = plain.class_logits(plain.pooled(plain.encode(*inputs)[-1]))
    np.testing.assert_allclose(logits, expected, rtol=0, atol=2 * step)


@takes_tensorflow
def test_the_poolers_weights_get_no_gradient_and_all_others_do():
    model = scatter_weights(BertClassifier(TINY, num_labels=3, pooling="mean"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(features())["logits"] ** 2)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    without = {
        variable.path
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True)
        if gradient is None
    }
    assert without == {variable.path for variable in model.encoder.pooler.weights}


def test_a_pooling_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match="`pooling=first` is unknown; choose pooler, cls, mean"):
        BertClassifier(TINY, num_labels=2, pooling="first")
    config = TINY.replace(extra={"classifier_pooling": "sum"})
    with pytest.raises(UserError, match="classifier_pooling is 'sum'; take"):
        BertClassifier(config, num_labels=2)


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
    [(BertClassifier, {"labels": ["x", "y", "z"]}), (BertTokenClassifier, {"num_labels": 2})],
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
    [
        ("abc", "labels='abc' is one text; give a list"),
        (["a", "b", "a"], "labels has 'a' twice"),
        ([1, 2], "labels.0 is 1; it must be text"),
        (3, "labels is 3; it must be a list"),
    ],
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_labels": 0}, "num_labels is 0; it must be 1 or more"),
        ({"num_labels": "2"}, "num_labels is '2'; it must be a whole number"),
        ({"num_labels": 1, "label_units": [3]}, "it must be a list of 2 items"),
        ({"num_labels": 1, "label_units": [3, 0]}, "it must be more than 0"),
    ],
)
def test_numbers_that_make_no_head_are_refused(classifier, options, sentence):
    with pytest.raises(UserError, match=sentence):
        BertClassifier.from_pretrained(classifier, **options)
