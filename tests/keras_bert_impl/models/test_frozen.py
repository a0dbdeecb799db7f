import keras
import numpy as np
import pytest

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.frozen import freeze_layers, frozen_layers
from tests.support.tiny_bert import TINY, features


def saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model.keras")
    return keras.models.load_model(tmp_path / "model.keras")


def paths(model):
    return [variable.path for variable in model.trainable_variables]


def test_a_frozen_encoder_leaves_the_head_before_and_after_saving(tmp_path):
    model = BertClassifier(TINY, num_labels=2)
    model.encoder.trainable = False
    again = saved_and_loaded(model, tmp_path)
    assert paths(again) == paths(model) == ["classifier/dense/kernel", "classifier/dense/bias"]
    assert not again.encoder.trainable
    again.encoder.trainable = True
    assert len(paths(again)) == len(model.weights) - sum("seed" in v.path for v in model.weights)


def test_blocks_may_be_frozen_one_by_one(tmp_path):
    model = BertClassifier(TINY, num_labels=2)
    model.encoder.embeddings.trainable = False
    model.encoder.blocks[0].trainable = False
    again = saved_and_loaded(model, tmp_path)
    assert paths(again) == paths(model)
    assert len(paths(again)) == 16 + 2 + 2  # one block, the pooler, the head


def test_a_block_may_be_trained_inside_a_frozen_encoder(tmp_path):
    model = BertClassifier(TINY, num_labels=2)
    model.encoder.trainable = False
    model.encoder.blocks[1].trainable = True
    again = saved_and_loaded(model, tmp_path)
    assert paths(again) == paths(model)
    assert len(paths(again)) == 16 + 2
    assert frozen_layers(again) == {"encoder": False, "encoder/layer_1": True}


def test_trainable_false_reaches_all_layers(tmp_path):
    encoder = BertEncoder(TINY, trainable=False)
    for model in (encoder, saved_and_loaded(encoder, tmp_path)):
        assert paths(model) == []
        assert not any(block.trainable for block in model.blocks)
        assert not model.blocks[0].attention.trainable


def test_a_frozen_encoder_keeps_its_weights_in_fit_and_the_optimizer_is_restored(tmp_path):
    model, batch = BertClassifier(TINY, num_labels=2), features(batch=4)
    model.encoder.trainable = False
    loss = {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile("adam", loss, jit_compile=False)
    before = np.array(model.encoder.embeddings.token_table)
    model.fit({"input_ids": batch["input_ids"]}, {"logits": np.array([0, 1, 0, 1])}, verbose=0)
    assert np.array_equal(before, np.array(model.encoder.embeddings.token_table))
    again = saved_and_loaded(model, tmp_path)
    expected = [np.array(variable) for variable in model.optimizer.variables]
    for value, wanted in zip(again.optimizer.variables, expected, strict=True):
        assert np.array_equal(np.array(value), wanted)


def test_a_layer_that_is_not_there_is_left_aside():
    model = BertEncoder(TINY)
    freeze_layers(model, {"layer_7": False})
    assert len(paths(model)) == len(paths(BertEncoder(TINY)))


@pytest.mark.parametrize("trainable", [True, False])
def test_nothing_is_said_of_layers_that_follow_their_model(trainable):
    assert frozen_layers(BertEncoder(TINY, trainable=trainable)) == {}
