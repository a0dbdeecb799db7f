import json
import logging
import shutil

import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import grow_vocabulary, read_portable, write_portable
from keras_bert_impl.checkpoints.formats.google_tf1 import GoogleSource, write_google_checkpoint
from keras_bert_impl.checkpoints.formats.hugging_face import HuggingFaceSource
from keras_bert_impl.checkpoints.formats.safetensors_file import read_tensor, write_safetensors
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.sentence_modules import read_sentence_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.elsewhere import KERAS_HUB
from tests.support.model_folders import write_any, write_prompted
from tests.support.tiny_bert import GOLDEN, TINY, VOCABULARY, scatter_weights
from tests.support.written_weights import rewrite, tensors_of


@pytest.fixture
def google(tmp_path):
    """google's own layout: checkpoint, bert_config.json and vocab.txt in one folder."""
    folder = tmp_path / "google"
    shutil.copytree(GOLDEN / "pretrain" / "init", folder)
    for name in ("bert_config.json", "vocab.txt"):
        shutil.copy(GOLDEN / "pretrain" / name, folder)
    return folder / "bert_model.ckpt"


def assert_same_tensors(first, second):
    assert first.names() == second.names()
    for name in first.names():
        one, other = first.read(name), second.read(name)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes(), name


def test_tf1_to_tf1_is_bit_identical(google, tmp_path):
    write_portable(
        read_portable(google, do_lower_case=True), tmp_path / "b" / "m.ckpt", "google_tf1"
    )
    assert_same_tensors(GoogleSource(google), GoogleSource(tmp_path / "b" / "m.ckpt"))


def test_a_folder_is_no_prefix(google, tmp_path):
    model = read_portable(google, do_lower_case=True)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"is a folder; name a prefix in it, such as .*bert_model"):
        write_portable(model, tmp_path / "out", "google_tf1")


def test_tf1_to_hugging_face_and_back_is_bit_identical(google, tmp_path):
    write_portable(read_portable(google, do_lower_case=True), tmp_path / "hf", "hugging_face")
    write_portable(read_portable(tmp_path / "hf"), tmp_path / "b" / "m.ckpt", "google_tf1")
    assert_same_tensors(GoogleSource(google), GoogleSource(tmp_path / "b" / "m.ckpt"))
    config = json.loads((google.parent / "bert_config.json").read_text())
    written = json.loads((tmp_path / "b" / "bert_config.json").read_text())
    assert written.items() >= config.items()
    assert (tmp_path / "b" / "vocab.txt").read_bytes() == (google.parent / "vocab.txt").read_bytes()


def test_every_number_of_the_original_arrives_under_hugging_face_s_name(google, tmp_path):
    write_portable(read_portable(google, do_lower_case=True), tmp_path / "hf", "hugging_face")
    theirs, ours = GoogleSource(google), HuggingFaceSource(tmp_path / "hf")
    kernel = theirs.read("bert/encoder/layer_1/attention/self/query/kernel")
    assert np.array_equal(ours.read("bert.encoder.layer.1.attention.self.query.weight"), kernel.T)
    assert np.array_equal(
        ours.read("cls.seq_relationship.weight"), theirs.read("cls/seq_relationship/output_weights")
    )
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["hidden_act"] == "gelu_new"  # what google's "gelu" is called there
    assert config["architectures"] == ["BertForPreTraining"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_goes_round_unchanged(google, tmp_path, dtype):
    source = GoogleSource(google)
    halves = {name: source.read(name).astype(dtype) for name in source.names()}
    write_google_checkpoint(google.parent / "half.ckpt", halves)
    model = read_portable(google.parent / "half.ckpt", do_lower_case=True)
    write_portable(model, tmp_path / "hf", "hugging_face")
    assert (
        json.loads((tmp_path / "hf" / "config.json").read_text())["dtype"] == np.dtype(dtype).name
    )
    write_portable(read_portable(tmp_path / "hf"), tmp_path / "b.ckpt", "google_tf1")
    assert_same_tensors(
        GoogleSource(google.parent / "half.ckpt"), GoogleSource(tmp_path / "b.ckpt")
    )


def test_a_model_directory_goes_through_tf1_unchanged(tmp_path):
    model = scatter_weights(BertPretrainer(TINY.replace(hidden_act="gelu_erf", causal=True)))
    write_model_directory(tmp_path / "a", model, TextSettings(VOCABULARY, do_lower_case=False))
    write_portable(read_portable(tmp_path / "a"), tmp_path / "g" / "m.ckpt", "google_tf1")
    write_portable(read_portable(tmp_path / "g" / "m.ckpt"), tmp_path / "b", "hugging_face")
    for file in ("model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_a_tagger_stays_a_tagger(tmp_path):
    model = scatter_weights(BertTokenClassifier(TINY, num_labels=7))
    write_model_directory(tmp_path / "a", model, TextSettings(VOCABULARY, do_lower_case=False))
    write_portable(read_portable(tmp_path / "a"), tmp_path / "b", "hugging_face")
    first, second = ((tmp_path / name / "config.json").read_text() for name in "ab")
    assert json.loads(first)["architectures"] == ["BertForTokenClassification"]
    assert first == second


def with_a_dense_layer_of_its_own(folder):
    """A model of vectors whose dense layer was trained apart from the pooler."""
    path = write_prompted(folder, pooling="pooler") / "2_Dense" / "model.safetensors"
    tensors = {name: read_tensor(path, f"linear.{name}") for name in ("weight", "bias")}
    write_safetensors(path, {f"linear.{name}": 0.5 * one for name, one in tensors.items()})
    return folder


def without_pooler(folder):
    write_prompted(folder)
    rewrite(folder, lambda t: {name: array for name, array in t.items() if "pooler" not in name})
    return folder


@pytest.mark.parametrize("write", [with_a_dense_layer_of_its_own, without_pooler])
def test_what_makes_a_vector_of_a_text_is_converted_too(tmp_path, write):
    model = read_portable(write(tmp_path / "a"))
    write_portable(model, tmp_path / "b", "hugging_face")
    grown, _ = grow_vocabulary(model, ["stent"])
    write_portable(grown, tmp_path / "grown", "hugging_face")
    first, second, third = (Embedder.from_pretrained(tmp_path / x) for x in ("a", "b", "grown"))
    asked = ["the dog runs .", "a cat"]
    np.testing.assert_array_equal(first.embed(asked, "query"), second.embed(asked, "query"))
    np.testing.assert_array_equal(first.embed(asked), third.embed(asked))
    assert tensors_of(tmp_path / "a").keys() == tensors_of(tmp_path / "b").keys()
    settings = read_sentence_settings(tmp_path / "a")
    assert read_sentence_settings(tmp_path / "b") == settings


def test_the_pooling_of_a_preset_is_converted_too(tmp_path):
    write_portable(read_portable(KERAS_HUB / "embedder_cls"), tmp_path / "b", "hugging_face")
    assert read_sentence_settings(tmp_path / "b").pooling == "cls"


@pytest.mark.parametrize("form", ["google_tf1", "keras_hub"])
def test_a_form_without_a_place_for_it_says_that_it_is_lost(tmp_path, caplog, form):
    model = read_portable(write_prompted(tmp_path / "a"))
    with caplog.at_level(logging.WARNING):
        write_portable(model, tmp_path / "b" / "m.ckpt", form)
    assert any(
        "how a text becomes a vector (modules.json), which is lo" in x for x in caplog.messages
    )


def test_what_a_foreign_configuration_says_of_other_weights_is_not_written(tmp_path):
    write_model_directory(tmp_path / "a", BertPretrainer(TINY), TextSettings(VOCABULARY))
    path = tmp_path / "a" / "config.json"
    others = {
        "tie_word_embeddings": False,
        "quantization_config": {"bits": 4},
        "auto_map": {"x": 1},
    }
    path.write_text(json.dumps({**json.loads(path.read_text()), **others, "kept": 5}))
    write_portable(read_portable(tmp_path / "a"), tmp_path / "b", "hugging_face")
    written = json.loads((tmp_path / "b" / "config.json").read_text())
    assert written["kept"] == 5
    assert not others.keys() & written.keys()


def test_labels_of_one_name_stay_questions_of_their_own(tmp_path):
    names = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "a", "1": "a", "2": "b"},
        "label2id": {"a": 1, "b": 2},
        "problem_type": "multi_label_classification",
    }
    write_any(tmp_path / "a", BertClassifier(TINY.replace(extra=names), 3), VOCABULARY)
    written = json.loads((tmp_path / "a" / "config.json").read_text())
    assert written["problem_type"] == "multi_label_classification"
    assert written["id2label"] == names["id2label"]


@pytest.mark.parametrize(
    ("remove", "words"),
    [
        ("vocab.txt", r"vocab\.txt: no such file; name the vocabulary with `vocab_file`"),
        (
            "bert_config.json",
            r"bert_config\.json: no such file; name the configuration with `bert_config_file`",
        ),
    ],
)
def test_what_lies_not_beside_must_be_named(google, remove, words):
    (google.parent / remove).unlink()
    with pytest.raises(UserError, match=words):
        read_portable(google, do_lower_case=True)


def test_the_casing_must_be_said_where_no_file_says_it(google):
    with pytest.raises(UserError, match="give `do_lower_case=True` for an uncased model"):
        read_portable(google)


def test_a_configuration_of_another_model_is_refused(google):
    path = google.parent / "bert_config.json"
    config = json.loads(path.read_text())
    for change, words in (
        ({"max_position_embeddings": 64}, r"position_embeddings has the shape \[128, 64\]"),
        ({"num_hidden_layers": 3}, "lacks 16 of the encoder's weights"),
        ({"intermediate_size": 128}, r"intermediate/kernel has the shape \[64, 256\]"),
        ({"vocab_size": 999}, r"token_embeddings has the shape \[1000, 64\]"),
    ):
        path.write_text(json.dumps({**config, **change}))
        with pytest.raises(UserError, match=words):
            read_portable(google, do_lower_case=True)
