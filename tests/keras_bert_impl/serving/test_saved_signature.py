"""Signatures of SavedModels on disk."""

import shutil

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
    with pytest.raises(UserError, match=r"no signature double that gives z \(it has double\)"):
        load_signature(saved, "double", "something", trusted=True, answers=["z"])
    (saved / "saved_model.pb").write_bytes(b"damaged")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_signature(saved, "double", "something", trusted=True)


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("at", [0.0, 0.2, 0.4, 0.6, 0.8, 0.999])
@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_one_changed_bit_is_told_before_tensorflow_believes_the_graph(saved, monkeypatch, name, at):
    flip(saved / name, at)
    monkeypatch.setattr(tf.saved_model, "load", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(UserError, match=r"cannot be loaded .*; export it again"):
        load_signature(saved, "double", "something", trusted=True)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "fingerprint.pb").unlink(), "has no fingerprint.pb"),
        (lambda folder: shutil.rmtree(folder / "variables"), "cannot be loaded"),
        (lambda folder: flip(folder / "variables/variables.data-00000-of-00001", 0), "loaded"),
        (lambda folder: (folder / "variables/variables.index").write_bytes(b""), "is empty"),
    ],
)
def test_what_is_missing_or_damaged_is_one_sentence(saved, damage, words):
    damage(saved)
    with pytest.raises(UserError, match=words):
        load_signature(saved, "double", "something", trusted=True)


def test_a_signature_that_takes_something_else_is_told_when_it_is_asked(saved):
    ask = load_signature(saved, "double", "something", trusted=True)
    with pytest.raises(UserError, match="its signature double fails"):
        ask(text=tf.constant(["a"]))


def test_what_nobody_trusts_is_not_even_loaded(saved, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "load", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(UserError, match=r"is a SavedModel, a program .* `trust_saved_model=True`"):
        load_signature(saved, "double", "something", trusted=False)
