import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import (
    WORD_VOCABULARY,
    write_classifier,
    write_encoder,
    write_pretrainer,
)


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_heads_say_what_a_directory_is(tmp_path):
    assert isinstance(open_model(write_pretrainer(tmp_path / "a")).model, BertPretrainer)
    assert isinstance(open_model(write_classifier(tmp_path / "b", "xyz")).model, BertClassifier)
    assert isinstance(open_model(write_encoder(tmp_path / "c")).model, BertEncoder)


def test_a_classifier_brings_its_labels_vocabulary_and_casing(tmp_path):
    opened = open_model(write_classifier(tmp_path / "m", ["no", "yes", "perhaps"]))
    assert opened.labels == ("no", "yes", "perhaps")
    assert opened.text == TextSettings(WORD_VOCABULARY)
    assert opened.untrained == frozenset()


def test_an_output_of_untrained_weights_is_left_out(tmp_path):
    opened = open_model(write_pretrainer(tmp_path / "m"))
    outputs = {"sequence_output": 1, "pooled_output": 2, "next_sentence_logits": 3}
    assert opened.trained(outputs) == outputs
    without_pooler = open_model(without(write_encoder(tmp_path / "e"), "pooler"))
    assert without_pooler.untrained == {"pooler"}
    assert without_pooler.trained(outputs) == {"sequence_output": 1}


def without(folder, part):
    """The same directory with a file of weights that lacks a part."""
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    kept = {name: array for name, array in load_file(path).items() if part not in name}
    save_file(kept, path)
    return folder


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        open_model(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "tokenizer_config.json"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = write_encoder(tmp_path / "m")
    (folder / name).unlink()
    with pytest.raises(UserError, match=name):
        open_model(folder)


def test_a_vocabulary_that_is_too_large_is_refused(tmp_path):
    folder = write_encoder(tmp_path / "m")
    with (folder / "vocab.txt").open("a") as file:
        file.write("extra\n")
    with pytest.raises(UserError, match=r"vocab\.txt: has 18 tokens, but the model only knows 17"):
        open_model(folder)


def test_weights_of_another_shape_are_refused(tmp_path):
    folder = write_encoder(tmp_path / "m")
    change_config(folder, hidden_size=32)
    with pytest.raises(UserError, match="has the shape"):
        open_model(folder)


@pytest.mark.parametrize(
    ("name", "size"),
    [("vocab_size", 10**9), ("max_position_embeddings", 10**9), ("num_hidden_layers", 9999)],
)
def test_sizes_that_the_weights_do_not_bear_out_are_refused_before_a_model_is_made(
    tmp_path, name, size
):
    folder = write_encoder(tmp_path / "m")
    change_config(folder, **{name: size})
    with pytest.raises(UserError, match="name the configuration that belongs to the checkpoint"):
        open_model(folder)


def test_an_architecture_may_stand_without_a_list(tmp_path):
    folder = write_classifier(tmp_path / "m", "ab")
    change_config(folder, architectures="BertForSequenceClassification")
    assert open_model(folder).labels == ("a", "b")


def test_a_classifier_whose_configuration_miscounts_its_labels_opens(tmp_path):
    folder = write_classifier(tmp_path / "m", ["no", "yes", "perhaps"])
    change_config(folder, id2label={"0": "no", "1": "yes"}, num_labels=3)
    opened = open_model(folder)
    assert opened.model.num_labels == 3
    assert opened.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize("write", [write_pretrainer, write_encoder, write_classifier])
def test_a_tf1_folder_opens_as_the_model_directory_that_it_was_made_of(tmp_path, write):
    more = [["no", "yes", "perhaps"]] if write is write_classifier else []
    folder = write(tmp_path / "m", *more)
    write_portable(read_portable(folder), tmp_path / "google" / "bert_model.ckpt", "google_tf1")
    first, second = open_model(folder), open_model(tmp_path / "google")
    assert type(first.model) is type(second.model)
    assert first.text == second.text
    assert first.untrained == second.untrained
    for one, other in zip(first.model.weights, second.model.weights, strict=True):
        assert np.array_equal(one, other), one.path


def test_a_classifier_of_google_s_programs_is_told_by_its_weights(tmp_path):
    folder = write_classifier(tmp_path / "m", ["no", "yes", "perhaps"])
    write_portable(read_portable(folder), tmp_path / "google" / "model.ckpt-9", "google_tf1")
    path = tmp_path / "google" / "bert_config.json"
    config = json.loads(path.read_text())
    for name in ("architectures", "id2label", "label2id"):
        del config[name]
    path.write_text(json.dumps(config))
    opened = open_model(tmp_path / "google")
    assert isinstance(opened.model, BertClassifier)
    assert opened.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize("names", [["a", "b"], 5, True, {"1": "a", "2": "b"}])
def test_labels_without_their_numbers_are_refused(tmp_path, names):
    folder = write_classifier(tmp_path / "m", "ab")
    change_config(folder, id2label=names)
    with pytest.raises(UserError, match="id2label does not name its labels by the nu"):
        open_model(folder)


def test_half_a_head_is_named_by_what_it_lacks(tmp_path):
    folder = without(write_pretrainer(tmp_path / "m"), "cls.predictions.bias")
    with pytest.raises(UserError, match="holds a head without its masked_lm/output_bias"):
        open_model(folder)


def test_a_head_that_nobody_reads_may_be_half(tmp_path):
    folder = without(write_classifier(tmp_path / "m", "ab"), "classifier.bias")
    change_config(folder, architectures=["BertModel"])
    assert isinstance(open_model(folder).model, BertEncoder)


def test_a_head_of_another_kind_is_named(tmp_path):
    folder = shutil.copytree(write_classifier(tmp_path / "m", "ab"), tmp_path / "copy")
    change_config(folder, architectures=["BertForTokenClassification"])
    with pytest.raises(UserError, match="is a BertForTokenClassification"):
        open_model(folder)


@pytest.mark.parametrize(
    ("file", "setting"),
    [
        ("tokenizer_config.json", {"tokenizer_class": "BertJapaneseTokenizer"}),
        ("config.json", {"tokenizer_class": "BertJapaneseTokenizer"}),
        ("tokenizer_config.json", {"word_tokenizer_type": "mecab"}),
    ],
)
def test_text_that_is_cut_by_other_rules_is_not_cut_by_ours(tmp_path, file, setting):
    folder = write_pretrainer(tmp_path / "model")
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **setting}))
    with pytest.raises(UserError, match=rf"{file}: its text is cut by .*, not by BERT's own rules"):
        open_model(folder)


def test_quantized_weights_are_refused(tmp_path):
    folder = write_pretrainer(tmp_path / "model")
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "bert.encoder.layer.0.output.dense.weight"
    save_file({**tensors, name: tensors[name].astype(np.int8)}, path)
    with pytest.raises(
        UserError, match=rf"{name} holds int8; only float16, bfloat16, float32, float64 can"
    ):
        open_model(folder)
