import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.reinitialize import FreshWeights
from tests.support.model_folders import tiny_config, write_encoder


def values(model):
    return {weight.path: np.array(weight.value) for weight in model.weights}


@pytest.fixture
def models(tmp_path):
    """A new model before and after a checkpoint, and with some of its layers fresh again."""

    def make(**fresh):
        keras.utils.set_random_seed(7)
        model = BertClassifier(tiny_config(), num_labels=2)
        kept = FreshWeights.of(model, **fresh)
        new = values(model)
        restore(model, write_encoder(tmp_path / "model"))
        restored = values(model)
        kept.put_back(model)
        return new, restored, values(model)

    return make


def differing(one, other):
    return {path for path in one if not np.array_equal(one[path], other[path])}


def test_the_top_layers_and_the_pooler_keep_their_fresh_values_and_nothing_else(models):
    new, restored, result = models(layers=1, pooler=True)
    anew = {path for path in new if path.startswith(("layer_1/", "pooler/"))}
    assert len(anew) == 18
    assert differing(result, restored) == anew
    assert not differing({path: result[path] for path in anew}, new)


def test_without_either_all_is_the_checkpoints(models):
    _, restored, result = models()
    assert differing(result, restored) == set()


def test_fresh_values_are_those_of_bert(models):
    _, _, result = models(layers=2)
    assert np.all(result["layer_0/output_layer_norm/gamma"] == 1)
    assert np.all(result["layer_0/output/bias"] == 0)
    kernel = result["layer_1/intermediate/kernel"]
    assert np.abs(kernel).max() <= 0.04 + 1e-6  # cut at two standard deviations
    assert 0.01 < kernel.std() < 0.02


def test_more_layers_than_there_are_is_refused(models):
    with pytest.raises(UserError, match=r"`reinit_layers=3` is more than the 2 layers"):
        models(layers=3)


def test_layer_1_is_not_layer_11():
    config = tiny_config(num_hidden_layers=12)
    fresh = FreshWeights.of(BertClassifier(config, num_labels=2), layers=1)
    assert fresh.layers == ("layer_11",)
    assert all(path.startswith("layer_11/") for path in fresh.values)
