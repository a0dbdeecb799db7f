"""Signatures of SavedModels on disk."""

import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.sources import is_saved_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.signatures import load_signature


@pytest.fixture
def saved(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    spec = tf.TensorSpec([None], tf.float32, name="x")
    doubled = tf.function(lambda x: {"y": module.weight * x}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path), signatures={"double": doubled})
    return tmp_path


def test_a_signature_keeps_its_weights(saved):
    assert is_saved_model(saved)
    signature = load_signature(saved, "double", "something", trusted=True)
    assert signature(x=tf.constant([3.0]))["y"].numpy().tolist() == [6.0]


def test_a_missing_signature_and_a_damaged_model_are_one_sentence(saved):
    with pytest.raises(UserError, match="has no signature answers"):
        load_signature(saved, "answers", "a model for questions", trusted=True)
    (saved / "saved_model.pb").write_bytes(b"damaged")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_signature(saved, "double", "something", trusted=True)


def test_what_nobody_trusts_is_not_even_loaded(saved, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "load", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(UserError, match=r"is a SavedModel, a program .* `trust_saved_model=True`"):
        load_signature(saved, "double", "something", trusted=False)
