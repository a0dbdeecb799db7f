"""Heads on left-to-right encoders, and on a BiLSTM between encoder and head."""

import json

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.head_settings import with_bilstm
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

QUIET = TINY.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
RECURRENT = with_bilstm(QUIET.replace(causal=True), True)
takes_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients or graphs"
)


def logits(model, batch):
    return np.array(model(batch)["logits"], np.float64)


def test_the_last_token_goes_through_the_pooler_as_the_first_one_does():
    model = scatter_weights(BertClassifier(QUIET.replace(causal=True), 3, pooling="last"))
    batch, last = features(), [5, 7]  # row 0 ends with two positions of padding
    weights = {weight.path: np.array(weight, np.float64) for weight in model.weights}
    sequence = np.array(model.encoder(batch)["sequence_output"], np.float64)[[0, 1], last]
    pooled = np.tanh(sequence @ weights["pooler/dense/kernel"] + weights["pooler/dense/bias"])
    expected = pooled @ weights["classifier/dense/kernel"] + weights["classifier/dense/bias"]
    np.testing.assert_allclose(logits(model, batch), expected, atol=1e-5)


def test_with_a_bilstm_every_head_sees_both_sides_of_a_left_to_right_encoder():
    batch = features()
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][:, 4] = (batch["input_ids"][:, 4] + 1) % TINY.vocab_size
    tagger = scatter_weights(BertTokenClassifier(RECURRENT, 3))
    assert np.abs(logits(tagger, batch) - logits(tagger, changed))[:, 0].max() > 1e-6
    blind = scatter_weights(BertTokenClassifier(QUIET.replace(causal=True), 3))
    np.testing.assert_array_equal(logits(blind, batch)[:, :4], logits(blind, changed)[:, :4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: BertClassifier(RECURRENT, 3),
        lambda: BertSpanLabeler(RECURRENT),
        lambda: BertMultipleChoice(RECURRENT, 2),
    ],
)
def test_a_model_directory_keeps_the_bilstm_and_is_no_bert_for_others(make, tmp_path):
    model = scatter_weights(make())
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    written = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (written["model_type"], written["encoder_bilstm"]) == ("keras_bert_impl", True)
    again = make()
    report = restore(again, tmp_path / "model")
    assert (report.new, report.ignored) == ((), ())
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other), err_msg=one.path)


def test_a_classifier_with_a_bilstm_is_opened_and_saved_as_it_is(tmp_path):
    model = scatter_weights(BertClassifier(RECURRENT, 3))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    batch = {name: features()[name] for name in model.input}
    expected = logits(model, batch)
    np.testing.assert_array_equal(logits(open_model(tmp_path / "model").model, batch), expected)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(again, batch), expected)


@takes_tensorflow
def test_the_graph_for_inference_has_the_bilstm():
    model = scatter_weights(BertClassifier(RECURRENT, 3))
    batch = {name: features()[name] for name in model.input}
    served = inference_function(model)(batch)["logits"]
    np.testing.assert_allclose(np.array(served), logits(model, batch), atol=1e-5)


def test_an_odd_width_cannot_be_halved():
    odd = RECURRENT.replace(hidden_size=15, num_attention_heads=1)
    with pytest.raises(UserError, match="hidden_size 15 is odd"):
        BertTokenClassifier(odd, 3)
