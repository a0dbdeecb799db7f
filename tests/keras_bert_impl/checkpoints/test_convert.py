import json
import shutil

import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.formats.google_tf1 import GoogleSource, write_google_checkpoint
from keras_bert_impl.checkpoints.formats.hugging_face import HuggingFaceSource
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import GOLDEN, TINY, VOCABULARY, scatter_weights


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
