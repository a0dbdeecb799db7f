import logging

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels
from keras_bert_impl.models.base import freeze_layers, frozen_layers, set_kernels
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import WORD_VOCABULARY, write_encoder, write_pretrainer
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

TEXT = TextSettings(VOCABULARY, do_lower_case=False)


def vectors(model):
    return np.array(model(features(config=model.config))["pooled_output"])


def test_a_model_that_was_written_is_opened_again(tmp_path):
    encoder = scatter_weights(BertEncoder(TINY))
    encoder.save_pretrained(tmp_path / "model", TEXT)
    again = BertEncoder.from_pretrained(tmp_path / "model")
    assert again.config == TINY
    np.testing.assert_array_equal(vectors(again), vectors(encoder))


def test_an_opened_model_is_written_with_the_text_settings_that_it_came_with(tmp_path):
    scatter_weights(BertEncoder(TINY)).save_pretrained(tmp_path / "model", TEXT)
    BertEncoder.from_pretrained(tmp_path / "model").save_pretrained(tmp_path / "copy")
    for name in ("vocab.txt", "tokenizer_config.json", "model.safetensors", "config.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_options_reach_the_model(tmp_path):
    folder = write_encoder(tmp_path / "model")
    encoder = BertEncoder.from_pretrained(
        folder, return_all_layers=True, trainable=False, dtype="mixed_bfloat16", name="mine"
    )
    assert encoder.return_all_layers
    assert encoder.trainable_variables == []
    assert encoder.dtype_policy.name == encoder.blocks[0].dtype_policy.name == "mixed_bfloat16"
    assert encoder.name == "mine"


def test_an_encoder_is_taken_out_of_a_model_with_heads(tmp_path):
    folder = write_pretrainer(tmp_path / "model")
    encoder = BertEncoder.from_pretrained(folder)
    whole = BertPretrainer.from_pretrained(folder)
    for ours, theirs in zip(encoder.weights, whole.encoder.weights, strict=True):
        np.testing.assert_array_equal(np.array(ours), np.array(theirs))


def test_weights_that_start_at_random_are_named(tmp_path, caplog):
    folder = write_encoder(tmp_path / "model")
    with caplog.at_level(logging.WARNING):
        BertEncoder.from_pretrained(folder)
        assert caplog.text == ""
        BertPretrainer.from_pretrained(folder)
    assert "has no weights for these parts of BertPretrainer: masked_lm, next_sentence." in (
        caplog.text
    )


def test_without_a_tokenizer_the_sentence_says_what_to_give(tmp_path):
    encoder = BertEncoder(TINY)
    with pytest.raises(UserError, match=r"give the tokenizer: save_pretrained\(folder, tokenizer"):
        encoder.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_text_files_are_read_before_the_training(tmp_path):
    folder = write_encoder(tmp_path / "model")
    encoder = BertEncoder.from_pretrained(folder)
    (folder / "vocab.txt").unlink()
    encoder.save_pretrained(tmp_path / "copy")
    assert find_model(tmp_path / "copy").text == TextSettings(WORD_VOCABULARY)

    without = BertEncoder.from_pretrained(folder)
    sentence = r"vocab\.txt: no such file.*; give the tokenizer: save_pretrained\(folder, tokenizer"
    with pytest.raises(UserError, match=sentence):
        without.save_pretrained(tmp_path / "again")
    without.save_pretrained(tmp_path / "again", TextSettings(WORD_VOCABULARY))


def test_a_path_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        BertEncoder.from_pretrained(tmp_path / "nothing")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="one backend is enough")
def test_googles_form_is_opened_with_what_lies_beside_it(tmp_path):
    model = read_portable(write_encoder(tmp_path / "model"))
    write_portable(model, tmp_path / "tf1" / "bert_model.ckpt", "google_tf1")
    for path in (tmp_path / "tf1", tmp_path / "tf1" / "bert_model.ckpt"):
        encoder = BertEncoder.from_pretrained(path)
        np.testing.assert_array_equal(
            vectors(encoder), vectors(BertEncoder.from_pretrained(tmp_path / "model"))
        )


def test_the_vocabulary_of_another_model_is_refused(tmp_path):
    small = TINY.replace(vocab_size=len(WORD_VOCABULARY) - 1)
    with pytest.raises(UserError, match="the model only knows 16"):
        BertEncoder(small).save_pretrained(tmp_path / "model", TextSettings(WORD_VOCABULARY))


INPUTS = {name: features()[name] for name in ("input_ids", "input_mask", "segment_ids")}


class Counted(PlainKernels):
    """The plain kernels, counting how often attention is traced."""

    name = "counted"

    def __init__(self):
        self.count = 0

    def self_attention(self, *arguments):
        self.count += 1
        return super().self_attention(*arguments)


def encoder_with(chosen, **options):
    model = BertEncoder(TINY, **options)
    model.kernels = chosen
    return model


CALLS = {
    "eager": lambda model: model(INPUTS),
    "predict": lambda model: model.predict(INPUTS, verbose=0),
    "inside another model": lambda model: keras.Model(model.input, model(model.input))(INPUTS),
}


@pytest.mark.parametrize("way", CALLS)
def test_each_model_computes_with_its_own_kernels(way):
    first, second = Counted(), Counted()
    CALLS[way](encoder_with(first))
    before = first.count
    CALLS[way](encoder_with(second))
    CALLS[way](BertEncoder(TINY))
    assert first.count == before >= TINY.num_hidden_layers
    assert second.count == before


def test_a_model_lends_its_kernels_to_the_models_inside_it():
    outer, inner = Counted(), Counted()
    model = BertClassifier(TINY, num_labels=2)
    model.kernels, model.encoder.kernels = outer, inner
    model(INPUTS)
    assert (outer.count, inner.count) == (TINY.num_hidden_layers, 0)
    model.encoder(INPUTS)
    assert inner.count == TINY.num_hidden_layers


def test_kernels_in_use_around_a_call_are_taken():
    own, around = Counted(), Counted()
    with kernels.use(around):
        encoder_with(own)(INPUTS)
    assert (own.count, around.count) == (0, TINY.num_hidden_layers)


def test_a_saved_model_starts_with_the_plain_kernels(tmp_path):
    model = encoder_with(Counted())
    model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras")
    assert opened.kernels is PLAIN
    expected, given = (np.array(each(INPUTS)["pooled_output"]) for each in (model, opened))
    np.testing.assert_array_equal(given, expected)


def test_kernels_reach_models_inside_other_layers():
    encoder, chosen = BertEncoder(TINY), Counted()
    outputs = keras.layers.Dense(3)(encoder(encoder.input)["pooled_output"])
    wrapped = keras.Model(encoder.input, outputs)
    set_kernels(wrapped, chosen)
    wrapped(INPUTS)
    assert chosen.count == TINY.num_hidden_layers


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


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow leaves the weights alone")
@pytest.mark.parametrize("good_batches", [0, 1])
@pytest.mark.parametrize("way", ["predict", "evaluate"])
def test_a_model_that_failed_can_be_used_again(way, good_batches):
    """Keras on JAX takes the weights off a model while it predicts."""
    model = scatter_weights(BertClassifier(TINY, num_labels=2))
    loss = {"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile(loss=loss, jit_compile="auto")
    short = features()["input_ids"]
    long = np.ones([len(short), TINY.max_position_embeddings + 1], "int32")
    before = np.array(model({"input_ids": short})["logits"])

    def batches():
        for ids in [short] * good_batches + [long]:
            yield {"input_ids": ids}, {"logits": np.zeros(len(ids), "int32")}

    # Where Keras tries the first batch to build its losses, it wraps the error.
    with pytest.raises((UserError, RuntimeError), match="tokens long, but the model has"):
        getattr(model, way)(batches(), verbose=0)
    np.testing.assert_array_equal(np.array(model({"input_ids": short})["logits"]), before)
    after = model.predict({"input_ids": short}, verbose=0)["logits"]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
