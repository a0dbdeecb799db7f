"""Directories as others leave them: every one converts right or gives one sentence."""

import json
import shutil

import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.formats.hugging_face import WEIGHTS_FILE
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tiny_bert import TINY, VOCABULARY, scatter_weights
from tests.support.tokenizer_files import write_tokenizer_json
from tests.support.written_weights import rewrite, tensors_of

TABLE, BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
DECODER, DECODER_BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"


def write(folder, model):
    write_model_directory(folder, scatter_weights(model), TextSettings(VOCABULARY))
    return folder


@pytest.fixture
def folder(pretrained):
    return pretrained[1]


@pytest.fixture(scope="module")
def written_classifier(tmp_path_factory):
    return write(tmp_path_factory.mktemp("written") / "model", BertClassifier(TINY, num_labels=3))


@pytest.fixture
def classifier(written_classifier, tmp_path):
    return shutil.copytree(written_classifier, tmp_path / "model")


def change_config(folder, **changes):
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in values.items() if v != "gone"}))


def renamed(tensors, old, new):
    return {new if name == old else name: array for name, array in tensors.items()}


SPELLINGS = {
    "wrapped": lambda t: {f"module.{name}": array for name, array in t.items()},
    "encoder below another name": lambda t: {
        name.replace("bert.", "0.auto_model."): array for name, array in t.items()
    },
    "only the decoder of the tied pair": lambda t: renamed(t, TABLE, DECODER),
    "only the decoder's bias": lambda t: renamed(t, BIAS, DECODER_BIAS),
    "buffers": lambda t: {
        **t,
        "bert.embeddings.position_ids": np.arange(32)[None],
        "bert.embeddings.token_type_ids": np.zeros([1, 32], np.int64),
    },
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_gives_the_same_weights(folder, spelling):
    expected = read_portable(folder).weights
    rewrite(folder, SPELLINGS[spelling])
    again = read_portable(folder)
    assert again.weights.keys() == expected.keys()
    for path, array in expected.items():
        assert again.weights[path].tobytes() == array.tobytes(), path
    assert {reason for _, reason in again.report.ignored} <= {"constant"}


@pytest.mark.parametrize("name", ["tokenizer.json alone", "settings that say nothing"])
def test_a_tokenizer_json_stands_for_what_is_missing(folder, name):
    write_tokenizer_json(folder, VOCABULARY.tokens, lowercase=False, strip_accents=False)
    (folder / "vocab.txt").unlink()
    if name == "tokenizer.json alone":
        (folder / "tokenizer_config.json").unlink()
    else:
        (folder / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    model = read_portable(folder)
    assert model.text.vocabulary == VOCABULARY
    assert (model.text.do_lower_case, model.text.strip_accents) == (False, False)


@pytest.mark.parametrize("architectures", ["gone", None, "BertForPreTraining"])
def test_the_heads_are_found_where_the_configuration_does_not_name_them(folder, architectures):
    change_config(folder, architectures=architectures)
    write_portable(read_portable(folder), folder.parent / "again", "hugging_face")
    written = json.loads((folder.parent / "again" / "config.json").read_text())
    assert written["architectures"] == ["BertForPreTraining"]


def test_settings_that_are_left_out_are_those_of_transformers(folder):
    wanted = read_portable(folder).config
    for key in ("hidden_act", "type_vocab_size", "layer_norm_eps", "hidden_dropout_prob"):
        change_config(folder, **{key: "gone"})
    config = read_portable(folder).config
    assert config == wanted.replace(hidden_act="gelu_erf")
    change_config(folder, vocab_size="gone")
    with pytest.raises(UserError, match=r"shape \[30, 16\].*configuration says \[30522, 16\]"):
        read_portable(folder)


LABELLED = {
    "BertForSequenceClassification": lambda config: BertClassifier(config, num_labels=3),
    "BertForTokenClassification": lambda config: BertTokenClassifier(config, num_labels=3),
    "BertForMultipleChoice": lambda config: BertMultipleChoice(config, num_choices=2),
    "BertLMHeadModel": BertPretrainer,
}


@pytest.mark.parametrize("architecture", LABELLED)
def test_heads_and_labels_come_back_from_tf1(tmp_path, architecture):
    names = {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
    folder = write(tmp_path / "model", LABELLED[architecture](TINY))
    change_config(folder, architectures=[architecture], problem_type="multi_label_classification")
    if "Classification" in architecture:
        change_config(folder, **names)
    if architecture == "BertLMHeadModel":
        rewrite(folder, lambda t: {n: a for n, a in t.items() if "seq_relationship" not in n})
    write_portable(read_portable(folder), tmp_path / "g" / "m.ckpt", "google_tf1")
    back = read_portable(tmp_path / "g" / "m.ckpt")
    write_portable(back, tmp_path / "again", "hugging_face")
    first, second = (
        json.loads((place / "config.json").read_text()) for place in (folder, tmp_path / "again")
    )
    assert first == second
    before, after = tensors_of(folder), tensors_of(tmp_path / "again")
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert after[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: change_config(f, add_cross_attention=True), "add_cross_attention is True"),
        (lambda f: (f / "config.json").unlink(), r"config\.json: no such .* `bert_config_file`"),
        (lambda f: (f / "vocab.txt").unlink(), r"vocab\.txt: no such .* with `vocab_file`"),
        (lambda f: (f / "tokenizer_config.json").unlink(), "give `do_lower_case=True`"),
        (
            lambda f: (f / "tokenizer_config.json").write_text("{}"),
            "no file there says whether text is lower-cased; give `do_lower_case=True`",
        ),
        (
            lambda f: (f / "tokenizer_config.json").write_text(
                '{"do_lower_case": true, "tokenize_chinese_chars": false}'
            ),
            "tokenize_chinese_chars is False",
        ),
        (lambda f: shutil.move(f / WEIGHTS_FILE, f / "flax_model.msgpack"), "holds neither"),
    ],
)
def test_what_cannot_be_understood_gives_one_sentence(folder, damage, words):
    damage(folder)
    with pytest.raises(UserError, match=words) as caught:
        read_portable(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"weight": np.float32(1)}, r"classifier/dense/kernel has the shape \[\], but a head of 3"),
        ({"bias": np.float32(1)}, r"classifier/dense/bias has the shape \[\], but a head of 3"),
        ({"weight": np.ones([2, 16])}, r"\[16, 2\], but a head of 3 labels needs \[16, 3\]; down"),
        ({"weight": np.ones([3, 8])}, r"kernel has the shape \[8, 3\].*needs \[16, 3\]"),
    ],
)
def test_the_two_weights_of_a_head_must_fit_together(classifier, arrays, words):
    given = {f"classifier.{name}": np.asarray(a, np.float32) for name, a in arrays.items()}
    rewrite(classifier, lambda tensors: tensors | given)
    with pytest.raises(UserError, match=words):
        read_portable(classifier)


@pytest.mark.parametrize(
    "changes", [{"architectures": 5}, {"architectures": {"a": 1}}, {"id2label": 5, "label2id": [1]}]
)
def test_odd_names_of_heads_and_labels_are_written_right(classifier, tmp_path, changes):
    change_config(classifier, **changes)
    write_portable(read_portable(classifier), tmp_path / "again", "hugging_face")
    written = json.loads((tmp_path / "again" / "config.json").read_text())
    assert written["architectures"] == ["BertForSequenceClassification"]
    assert written["id2label"] == {str(number): f"LABEL_{number}" for number in range(3)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocab_size": 10**9}, r"configuration says \[1000000000, 16\]"),
        ({"max_position_embeddings": 10**9}, r"configuration says \[1000000000, 16\]"),
        ({"num_hidden_layers": 9999}, "holds 46 tensors, too few for the 9999 blocks"),
    ],
)
def test_a_configuration_that_the_weights_do_not_bear_out_is_refused(folder, changes, words):
    change_config(folder, **changes)
    with pytest.raises(UserError, match=words):
        read_portable(folder)


def describe(folder, **settings):
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def test_a_casing_that_contradicts_the_directory_is_refused(folder):
    describe(folder, do_lower_case=True)
    with pytest.raises(UserError, match=r"`do_lower_case=False` contradicts .*model, which was"):
        read_portable(folder, do_lower_case=False)


@pytest.mark.parametrize("settings", [{"do_lower_case": True}, {}])
def test_the_directory_s_accents_are_kept_where_the_casing_is_given(folder, settings):
    describe(folder, strip_accents=False, **settings)
    model = read_portable(folder, do_lower_case=True)
    assert (model.text.do_lower_case, model.text.strip_accents) == (True, False)
