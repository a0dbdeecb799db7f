"""A checkpoint of a run is read as the model directory that the run would write."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.formats.run_checkpoint import RunCheckpointSource
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings, read_dense
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.model_folders import tiny_config
from tests.support.run_checkpoints import TEXT, change_json, labels_config, write_step
from tests.support.tiny_bert import scatter_weights

MODELS = {
    "pretrainer": lambda: BertPretrainer(tiny_config()),
    "encoder": lambda: BertEncoder(tiny_config()),
    "classifier": lambda: BertClassifier(labels_config("no", "maybe", "yes"), 3),
    "regression": lambda: BertClassifier(tiny_config(), 1, label_units=(7.3, 0.9)),
    "tagger": lambda: BertTokenClassifier(labels_config("O", "B-a", "I-a"), 3),
    "chooser": lambda: BertMultipleChoice(tiny_config(), 2),
    "span": lambda: BertSpanLabeler(tiny_config()),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_is_written_to_the_same_bytes_as_at_the_end_of_its_run(kind, tmp_path):
    model = scatter_weights(MODELS[kind]())
    step = write_step(tmp_path / "run" / "checkpoints", model)
    write_model_directory(tmp_path / "of_run", model, TEXT)
    write_portable(read_portable(step), tmp_path / "exported", "hugging_face")
    for path in (tmp_path / "of_run").iterdir():
        assert (tmp_path / "exported" / path.name).read_bytes() == path.read_bytes()


def test_a_pooler_of_vectors_is_that_of_the_step_although_the_model_is_trained_on(tmp_path):
    model = BertEncoder(tiny_config())
    saved = [tf.Variable(weight.value + 1) for weight in model.weights]
    step = write_step(tmp_path, model, sentence=SentenceSettings("pooler"), weights=saved)
    kernel, bias = model.pooler.weights
    np.testing.assert_allclose(read_dense(step).kernel, np.array(kernel) + 1)
    np.testing.assert_allclose(read_dense(step).bias, np.array(bias) + 1)


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_labels_task_and_casing_are_those_of_the_model(kind, tmp_path):
    model = MODELS[kind]()
    step = write_step(tmp_path / "checkpoints", model)
    write_model_directory(tmp_path / "model", model, TEXT)
    found, finished = find_model(step), find_model(tmp_path / "model")
    assert found.labels == finished.labels
    assert found.config == finished.config
    assert found.text == finished.text == TEXT
    assert found.architecture == finished.architecture


def test_an_encoder_is_found_in_a_checkpoint_with_a_head(tmp_path):
    model = scatter_weights(MODELS["pretrainer"]())
    report = restore(encoder := MODELS["encoder"](), write_step(tmp_path, model))
    assert {name.split("/")[0] for name, _ in report.ignored} == {"masked_lm", "next_sentence"}
    np.testing.assert_array_equal(
        encoder.weights[0], next(w for w in model.weights if w.path == encoder.weights[0].path)
    )


def test_averaged_weights_stand_in_for_the_last_ones_as_in_the_runs_model(tmp_path):
    model, averaged = scatter_weights(MODELS["classifier"]()), MODELS["classifier"]()
    scatter_weights(averaged, seed=1)
    average = [tf.Variable(weight.value) for weight in averaged.weights]
    step = write_step(tmp_path / "all", model, ema=average)
    restore(other := MODELS["classifier"](), step)
    np.testing.assert_array_equal(other.weights[3], averaged.weights[3])


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    model = scatter_weights(BertClassifier(labels_config("no", "yes"), 2))
    return write_step(tmp_path_factory.mktemp("run") / "checkpoints", model)


@pytest.fixture
def step(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run" / "checkpoints" / original.name)


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def names_of(step):
    return json.loads((step / "weights.json").read_text())["names"]


DATA = "state.data-00000-of-00001"
DAMAGE = {
    "half the data": lambda step: cut(step / DATA, 0.5),
    "no data": lambda step: (step / DATA).unlink(),
    "half an index": lambda step: cut(step / "state.index", 0.5),
    "an empty index": lambda step: cut(step / "state.index", 0),
    "no index": lambda step: (step / "state.index").unlink(),
    "no list of names": lambda step: change_json(step / "weights.json", names={"a": 1}),
    "names that are numbers": lambda step: change_json(step / "weights.json", names=[1, 2]),
    "fewer names": lambda step: change_json(step / "weights.json", names=names_of(step)[:-1]),
    "units in words": lambda step: change_json(step / "weights.json", label_units=["a", "b"]),
    "half a list of names": lambda step: cut(step / "weights.json", 0.5),
    "another configuration": lambda step: change_json(step / "config.json", hidden_size=32),
    "no configuration": lambda step: (step / "config.json").unlink(),
    "no vocabulary": lambda step: (step / "vocab.txt").unlink(),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_not_whole_is_one_sentence_that_names_the_checkpoint(what, step):
    DAMAGE[what](step)
    with pytest.raises(UserError, match=str(step)):
        read_portable(step)


def test_a_checkpoint_of_an_older_version_says_what_it_lacks(step):
    (step / "weights.json").unlink()
    with pytest.raises(UserError, match=r"weights\.json: no such file.*resume the run"):
        find_model(step)


def test_a_head_over_a_frozen_encoder_is_no_model(tmp_path):
    model = MODELS["classifier"]()
    head = [tf.Variable(weight.value) for weight in model.weights[-2:]]
    names = [weight.path for weight in model.weights[-2:]]
    step = write_step(tmp_path, model, names=names, weights=head)
    with pytest.raises(UserError, match="only the head that learns over a frozen encoder"):
        find_model(step)


def test_an_opened_checkpoint_can_be_read_after_its_run_let_it_go(step):
    source = RunCheckpointSource(step)
    before = {name: source.read(name) for name in source.names()}
    opened = RunCheckpointSource(step)
    shutil.rmtree(step)
    for name, array in before.items():
        np.testing.assert_array_equal(opened.read(name), array)
