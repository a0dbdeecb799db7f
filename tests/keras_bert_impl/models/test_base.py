import logging

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.kernels import PLAIN, PlainKernels
from keras_bert_impl.models.base import frozen_layers, set_kernels
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import WORD_VOCABULARY, write_encoder
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

TEXT = TextSettings(VOCABULARY, do_lower_case=False)


def vectors(model):
    return np.array(model(features(config=model.config))["pooled_output"])


def test_an_opened_model_is_written_with_the_text_settings_that_it_came_with(tmp_path):
    scatter_weights(BertEncoder(TINY)).save_pretrained(tmp_path / "model", TEXT)
    BertEncoder.from_pretrained(tmp_path / "model").save_pretrained(tmp_path / "copy")
    for name in ("vocab.txt", "tokenizer_config.json", "model.safetensors", "config.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_an_unknown_argument_is_a_mistake(tmp_path):
    folder = write_encoder(tmp_path / "model")
    for make in (lambda **more: BertClassifier(TINY, 2, **more),
                 lambda **more: BertEncoder.from_pretrained(folder, **more)):  # fmt: skip
        with pytest.raises(TypeError, match="normalise"):
            make(normalise=True)


def test_whole_numbers_are_no_dtype_of_a_model(tmp_path):
    folder = write_encoder(tmp_path / "model")
    for dtype in ("int8", "int32", "string"):
        with pytest.raises(UserError, match=f"dtype='{dtype}' cannot be taken; give float32"):
            BertEncoder.from_pretrained(folder, dtype=dtype)
    with pytest.raises(UserError, match=r"\(int8\); .*engine=openvino, precision=int8"):
        BertEncoder(TINY).quantize("int8")


def test_a_model_made_inside_of_a_scope_is_neither_filled_nor_written(tmp_path):
    folder = write_encoder(tmp_path / "model")
    with keras.name_scope("tower"):
        with pytest.raises(UserError, match=r"inside of another layer or name scope \(tower\)"):
            BertEncoder.from_pretrained(folder)
        model = BertEncoder(TINY)
    with pytest.raises(UserError, match="make it outside, and hand it over"):
        model.save_pretrained(tmp_path / "copy", TEXT)
    assert not (tmp_path / "copy").exists()


def test_options_reach_the_model(tmp_path):
    folder = write_encoder(tmp_path / "model")
    encoder = BertEncoder.from_pretrained(
        folder, return_all_layers=True, trainable=False, dtype="mixed_bfloat16", name="mine"
    )
    assert encoder.return_all_layers
    assert encoder.trainable_variables == []
    assert encoder.dtype_policy.name == encoder.blocks[0].dtype_policy.name == "mixed_bfloat16"
    assert encoder.name == "mine"


def test_weights_that_start_at_random_are_named(tmp_path, caplog):
    folder = write_encoder(tmp_path / "model")
    with caplog.at_level(logging.WARNING):
        BertEncoder.from_pretrained(folder)
        assert caplog.text == ""
        BertPretrainer.from_pretrained(folder)
    assert "has no weights for these parts of BertPretrainer: masked_lm, next_sentence." in (
        caplog.text
    )


def test_a_file_s_name_is_no_tokenizer(tmp_path):
    with pytest.raises(UserError, match=r"'vocab.txt' is no TextSettings; give .*Vocabulary\.load"):
        BertEncoder(TINY).save_pretrained(tmp_path / "model", "vocab.txt")


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


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="one backend is enough")
def test_googles_form_is_opened_with_what_lies_beside_it(tmp_path):
    model = read_portable(write_encoder(tmp_path / "model"))
    write_portable(model, tmp_path / "tf1" / "bert_model.ckpt", "google_tf1")
    for path in (tmp_path / "tf1", tmp_path / "tf1" / "bert_model.ckpt"):
        encoder = BertEncoder.from_pretrained(path)
        np.testing.assert_array_equal(
            vectors(encoder), vectors(BertEncoder.from_pretrained(tmp_path / "model"))
        )


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


def test_a_block_may_be_trained_inside_a_frozen_encoder(tmp_path):
    model = BertClassifier(TINY, num_labels=2)
    model.encoder.trainable = False
    model.encoder.blocks[1].trainable = True
    again = saved_and_loaded(model, tmp_path)
    assert paths(again) == paths(model)
    assert len(paths(again)) == 16 + 2
    assert frozen_layers(again) == {"encoder": False, "encoder/layer_1": True}


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


def test_other_models_have_defaults_too():
    scores = BertMultipleChoice(TINY, num_choices=2)({"input_ids": np.ones([1, 2, 5], "int32")})
    assert tuple(scores["logits"].shape) == (1, 2)
    with pytest.raises(UserError, match="'masked_lm_positions' is missing"):
        BertPretrainer(TINY)({"input_ids": np.ones([1, 5], "int32")})


def test_a_model_inside_another_may_be_given_the_ids_only(tmp_path):
    ids = keras.Input((None,), dtype="int32", name="ids")
    outputs = keras.layers.Dense(3)(BertEncoder(TINY)({"input_ids": ids})["pooled_output"])
    model = keras.Model(ids, outputs)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    batch = features()["input_ids"]
    np.testing.assert_array_equal(np.array(again(batch)), np.array(model(batch)))
