import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_impl.checkpoints.convert import (
    ConvertConfig,
    GrowConfig,
    read_portable,
    write_portable,
)
from keras_bert_impl.checkpoints.model_source import find_model, locate, named_labels
from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.options import options_of
from keras_bert_impl.tokenization.preprocessor import BertPreprocessor
from keras_bert_impl.tokenization.text_settings import Casing, TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.vectors.options import FeaturesConfig
from tests.support.elsewhere import KERAS_HUB, TF_MODELS, TRANSFORMERS
from tests.support.model_folders import (
    WORD_VOCABULARY,
    tiny_config,
    write_classifier,
    write_encoder,
    write_pretrainer,
    write_start,
)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("start") / "model")


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "model")


@pytest.fixture(scope="module")
def google_original(tmp_path_factory):
    """A folder as google's archives have it: nothing in it says the casing."""
    folder = tmp_path_factory.mktemp("google")
    model = read_portable(write_pretrainer(folder / "model"))
    write_portable(model, folder / "archive" / "bert_model.ckpt", "google_tf1")
    (folder / "archive" / "tokenizer_config.json").unlink()
    return folder / "archive"


@pytest.fixture
def google(google_original, tmp_path):
    return shutil.copytree(google_original, tmp_path / "archive")


@pytest.fixture
def files(tmp_path):
    """A configuration and a vocabulary as files of their own."""
    config, vocabulary = tmp_path / "bert_config.json", tmp_path / "vocab.txt"
    config.write_text(json.dumps(tiny_config().to_google()))
    WORD_VOCABULARY.write(vocabulary)
    return {"bert_config_file": str(config), "vocab_file": str(vocabulary)}


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_model_directory_brings_everything(folder):
    source = find_model(folder)
    assert source.config == tiny_config()
    assert source.text == TextSettings(WORD_VOCABULARY)
    assert source.checkpoint == folder
    assert source.architecture == "BertModel"


MODEL_FILES = ["", "model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"]


@pytest.mark.parametrize("name", MODEL_FILES)
def test_any_file_of_a_model_directory_stands_for_it(folder, name):
    assert find_model(folder / name).checkpoint == folder


GOOGLE_FILES = [
    "",
    "bert_model.ckpt",
    "bert_model.ckpt.index",
    "bert_model.ckpt.data-00000-of-00001",
    "bert_config.json",
    "vocab.txt",
]


@pytest.mark.parametrize("name", GOOGLE_FILES)
def test_any_file_of_a_google_archive_stands_for_it(google, name):
    source = find_model(google / name, do_lower_case=True)
    assert source.checkpoint == google / "bert_model.ckpt"
    assert source.config == tiny_config()
    assert source.text == TextSettings(WORD_VOCABULARY)


@pytest.mark.parametrize(
    ("name", "lower"),
    [
        ("uncased_L-12_H-768_A-12", True),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("cased_L-12_H-768_A-12", False),
        ("multi_cased_L-12_H-768_A-12", False),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
    ],
)
def test_the_names_of_google_s_folders_say_the_casing(google, name, lower):
    assert find_model(google.rename(google.with_name(name))).text.do_lower_case is lower


def test_a_new_model_needs_a_configuration_and_a_vocabulary(files):
    source = find_model(None, **files, do_lower_case=False)
    assert source.checkpoint is None
    assert source.labels == ()
    assert (source.config, source.text) == (tiny_config(), TextSettings(WORD_VOCABULARY, False))


def test_a_new_model_of_a_published_size_takes_the_tokens_of_the_vocabulary(files):
    source = find_model(None, model_size="mini", vocab_file=files["vocab_file"], do_lower_case=True)
    assert source.config == named_config("mini", len(WORD_VOCABULARY))


def test_a_size_beside_a_configuration_is_refused(files):
    with pytest.raises(UserError, match="`model_size=mini` is for a new model"):
        find_model(None, **files, model_size="mini")


def test_a_size_needs_a_vocabulary():
    with pytest.raises(UserError, match="`model_size` needs `vocab_file`"):
        find_model(None, model_size="mini")


def test_the_vocabulary_may_lie_beside_the_configuration(files):
    source = find_model(None, bert_config_file=files["bert_config_file"], do_lower_case=True)
    assert source.text.vocabulary == WORD_VOCABULARY


def changed_vocabulary(path, changes, more=()):
    """A file with the tokens of a vocabulary, some of them replaced."""
    tokens = [*WORD_VOCABULARY.tokens, *more]
    for number, token in changes.items():
        tokens[number] = token
    path.write_text("".join(f"{token}\n" for token in tokens if token))
    return str(path)


@pytest.mark.parametrize("kind", ["folder", "google"])
def test_a_vocabulary_that_contradicts_the_model_s_own_is_refused(kind, tmp_path, request):
    """Its weights would be trained on as those of other words, without an error."""
    model = request.getfixturevalue(kind)
    count = len(WORD_VOCABULARY)
    shifted = changed_vocabulary(tmp_path / "other.txt", {7: ""})
    said = (
        rf"other.txt`: has {count - 1} tokens, but the model's own vocabulary .*vocab.txt has "
        rf"{count}, and {count - 7} of these are not where they are there \(number 7 is '"
    )
    with pytest.raises(UserError, match=said):
        find_model(model, vocab_file=shifted, do_lower_case=True)
    changed = changed_vocabulary(tmp_path / "changed.txt", {count - 1: "other"})
    with pytest.raises(UserError, match="1 of these are not"):
        find_model(model, vocab_file=changed, do_lower_case=True)
    cut_off = changed_vocabulary(tmp_path / "cut_off.txt", {count - 1: ""})
    with pytest.raises(UserError, match=rf"number {count - 1} is '.*', which it lacks"):
        find_model(model, vocab_file=cut_off, do_lower_case=True)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["\u1100\u1161", "b"], ("가", "b")), (["\u1100\u1161", "가"], ("\u1100\u1161", "가"))],
)
def test_labels_are_composed_but_where_two_would_be_one(tmp_path, labels, expected):
    assert find_model(write_classifier(tmp_path / "model", labels)).labels == expected


def test_vocabularies_that_agree_are_taken(folder, tmp_path):
    count = len(WORD_VOCABULARY)
    same = changed_vocabulary(tmp_path / "same.txt", {})
    assert len(find_model(folder, vocab_file=same).text.vocabulary) == count
    # A table may have more rows than its vocabulary has tokens, and unused ones.
    changed_vocabulary(folder / "vocab.txt", {count - 2: "[unused1]", count - 1: ""})
    given = changed_vocabulary(tmp_path / "given.txt", {count - 2: "new"})
    assert find_model(folder, vocab_file=given).text.vocabulary.tokens[count - 2] == "new"
    (folder / "vocab.txt").write_text("broken")
    assert find_model(folder, vocab_file=given)
    (folder / "vocab.txt").unlink()
    assert find_model(folder, vocab_file=changed_vocabulary(tmp_path / "x.txt", {7: ""}))


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("bert_config_file", "give `init_checkpoint`, or for a new model, which knows nothing yet"),
        ("vocab_file", "`vocab_file` is missing"),
    ],
)
def test_what_is_missing_is_named(files, tmp_path, missing, said):
    (tmp_path / "elsewhere").mkdir()
    config = shutil.move(files["bert_config_file"], tmp_path / "elsewhere")
    given = {**files, "bert_config_file": config, missing: None}
    with pytest.raises(UserError, match=said):
        find_model(None, **given)


def test_without_text_no_vocabulary_is_needed(folder):
    (folder / "vocab.txt").unlink()
    source = find_model(folder, needs_text=False)
    assert source.found_text is None
    with pytest.raises(ValueError, match=r"vocab\.txt: no such file"):
        _ = source.text


@pytest.mark.parametrize("name", ["modle/", "archive/modle.ckpt", "archive/modle", "x.ckpt"])
def test_a_mistyped_path_is_said_to_be_missing(google, name):
    with pytest.raises(UserError, match="no such file or folder; check the path"):
        find_model(google.parent / name)


def test_a_mistyped_relative_path_into_a_folder_is_not_looked_for_on_the_hub(google, monkeypatch):
    monkeypatch.chdir(google.parent)
    with pytest.raises(UserError, match="archive/modle: no such file or folder; check the path"):
        find_model("archive/modle")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_named_pickle_is_refused_with_a_remedy(folder, name):
    (folder / name).write_bytes(b"\x80\x04.")
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    with pytest.raises(UserError, match=r"is a pickle.*name the folder if model\.safetensors"):
        find_model(folder / name)


def test_a_pickle_stands_for_the_safetensors_beside_it(folder):
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert find_model(folder / "pytorch_model.bin").checkpoint == folder


def test_the_folder_of_a_run_stands_for_the_model_in_it(folder):
    (folder.parent / "flags.cfg").touch()
    assert find_model(folder.parent).checkpoint == folder


def test_a_tilde_is_the_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_model("~/model").checkpoint == folder
    with pytest.raises(UserError, match="~nobody-of-that-name/model: no such file or folder"):
        find_model("~nobody-of-that-name/model")


@pytest.mark.parametrize("name", ["", "  ", 3])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(UserError, match="names no model; give a model directory"):
        find_model(name)


def test_another_file_is_refused_with_a_remedy(folder):
    (folder / "flax_model.msgpack").touch()
    with pytest.raises(UserError, match=r"msgpack: is no file of a model.*name the folder"):
        find_model(folder / "flax_model.msgpack")


def test_an_empty_folder_is_no_model(tmp_path):
    with pytest.raises(UserError, match=r"holds neither model\.safetensors nor"):
        find_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("config.json", "name the configuration with `bert_config_file`"),
        ("vocab.txt", "name the vocabulary with `vocab_file`"),
        ("tokenizer_config.json", "give `do_lower_case=True` for an uncased model or"),
    ],
)
def test_a_missing_file_is_named_with_a_remedy_that_helps(folder, files, name, remedy):
    (folder / name).unlink()
    with pytest.raises(UserError, match=remedy):
        find_model(folder)
    assert find_model(folder, **files, do_lower_case=True).text == TextSettings(WORD_VOCABULARY)


def test_a_casing_that_contradicts_the_directory_is_refused(folder):
    with pytest.raises(UserError, match=r"`do_lower_case=False` contradicts .*model, which was"):
        find_model(folder, do_lower_case=False)


@pytest.mark.parametrize(
    ("given", "told", "default", "expected"),
    [
        (None, Casing(), True, (True, None)),
        (None, Casing(False), True, (False, None)),
        (True, Casing(False, True), None, (True, None)),
        (False, Casing(False, True), None, (False, True)),
        (True, Casing(), False, (True, None)),
    ],
)
def test_the_casing_is_what_is_given_then_what_is_told_then_the_default(
    google, given, told, default, expected
):
    text = find_model(google, do_lower_case=given, told=told, default_lower_case=default).text
    assert (text.do_lower_case, text.strip_accents) == expected


def test_a_directory_s_casing_counts_before_what_is_told(folder):
    text = find_model(folder, told=Casing(False, False), default_lower_case=False).text
    assert text == TextSettings(WORD_VOCABULARY)


def cased_vocabulary(folder):
    words = (f"Word{number}" for number in range(12))
    Vocabulary([*SPECIAL_TOKENS, *words]).write(folder / "vocab.txt")


@pytest.mark.parametrize("options", [{"do_lower_case": True}, {"default_lower_case": True}])
def test_a_chosen_casing_must_go_with_the_vocabulary(google, options):
    cased_vocabulary(google)
    with pytest.raises(UserError, match=r"have capitals .* Then give `do_lower_case=False`"):
        find_model(google, **options)


def test_a_casing_that_the_shards_tell_is_believed(google):
    cased_vocabulary(google)
    assert find_model(google, told=Casing(True)).text.do_lower_case


def test_a_configuration_that_the_weights_do_not_bear_out_is_refused(folder, files, tmp_path):
    change(tmp_path / "bert_config.json", vocab_size=10**9)
    with pytest.raises(UserError, match=r"the configuration says \[1000000000, 16\]"):
        find_model(folder, bert_config_file=files["bert_config_file"])


def test_a_vocabulary_that_leads_nowhere_is_not_passed_over(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "vocab.txt").rename(copy / "tokenizer.json")
    (copy / "vocab.txt").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"vocab\.txt: leads to nowhere"):
        find_model(copy)


def test_a_vocabulary_that_is_too_large_is_refused(folder, tmp_path):
    path = tmp_path / "large.txt"
    path.write_text("\n".join([*WORD_VOCABULARY.tokens, "extra"]) + "\n")
    with pytest.raises(UserError, match=r"large\.txt: has 18 tokens, but the model only knows 17"):
        find_model(folder, vocab_file=str(path))


def test_labels_are_those_of_the_configuration(tmp_path):
    folder = write_classifier(tmp_path / "m", ["no", "yes", "perhaps"])
    assert find_model(folder).labels == ("no", "yes", "perhaps")


def test_the_weights_say_how_many_labels_there_are(tmp_path):
    """`num_labels` 3 with the `id2label` of another model: transformers numbers them anew."""
    folder = write_classifier(tmp_path / "m", ["no", "yes", "perhaps"])
    change(folder / "config.json", id2label={"0": "no", "1": "yes"}, num_labels=3)
    assert find_model(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_model_without_head_has_no_labels(folder):
    change(folder / "config.json", id2label={"0": "no", "1": "yes"})
    assert find_model(folder).labels == ()


def test_a_single_bias_counts_labels_too(tmp_path):
    folder = write_classifier(tmp_path / "m", ["no", "yes", "perhaps"])
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("classifier.weight")
    save_file(
        {n: np.ascontiguousarray(a) for n, a in tensors.items()}, folder / "model.safetensors"
    )
    assert len(find_model(folder).labels) == 3


def test_a_name_of_the_hub_is_not_looked_for_where_a_folder_has_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert locate("model").resolve() == folder


@pytest.mark.parametrize(("length", "sentence"), [(13, "12 positions"), (4, "5 or more")])
def test_lengths_out_of_range_are_refused(folder, length, sentence):
    with pytest.raises(UserError, match=sentence):
        find_model(folder).config.check_length(length, at_least=5)


@pytest.mark.parametrize("job", [ConvertConfig, GrowConfig, FeaturesConfig])
def test_every_job_on_checkpoints_can_be_told_what_they_do_not_say(job):
    defaults = {one.name: one.default for one in options_of(job)}
    assert [defaults[name] for name in ("bert_config_file", "vocab_file", "do_lower_case")] == [
        None,
        None,
        None,  # not False: only what is given is compared with the checkpoint
    ]


def test_added_tokens_reach_every_door_and_are_written_again(tmp_path):
    write_start(tmp_path / "model", vocab_size=18)
    (tmp_path / "model/added_tokens.json").write_text('{"[E1]": 17}')
    encoder = BertEncoder.from_pretrained(tmp_path / "model")
    encoder.save_pretrained(tmp_path / "again")
    for model in (tmp_path / "model", tmp_path / "again"):
        expected = [[2, 17, 5, 6, 3]]
        assert Tokenizer.from_pretrained(model)("[E1] the dog")["input_ids"].tolist() == expected
        layer = BertPreprocessor.from_pretrained(model, pad_to_longest=True)
        assert layer(["[E1] the dog"])["input_ids"].numpy().tolist() == expected
    write_portable(read_portable(tmp_path / "model"), tmp_path / "tf1/m.ckpt", "google_tf1")
    assert find_model(tmp_path / "tf1/m.ckpt").text == find_model(tmp_path / "model").text


@pytest.mark.parametrize(
    ("path", "architecture"),
    [
        (TF_MODELS / "more" / "v2_tags" / "ckpt-7.index", "BertForTokenClassification"),
        (TF_MODELS / "more" / "v1_span", "BertForQuestionAnswering"),
        (TF_MODELS / "pretrainer", "BertForMaskedLM"),
        (TRANSFORMERS / "tags" / "tf_model.h5", "BertForTokenClassification"),
        (KERAS_HUB / "masked_lm" / "model.weights.h5", "BertForMaskedLM"),
    ],
)
def test_any_file_stands_for_the_model_and_its_head_is_known(path, architecture):
    assert find_model(path, do_lower_case=None, needs_text=False).architecture == architecture


@pytest.mark.parametrize(
    ("source", "file", "change", "why"),
    [
        (
            KERAS_HUB / "backbone",
            "config.json",
            {"class_name": "RobertaBackbone"},
            "is a preset of RobertaBackbone; only BertBackbone",
        ),
        (
            KERAS_HUB / "classifier",
            "task.json",
            {"class_name": "BertOther"},
            "is a preset of BertOther",
        ),
        (
            TRANSFORMERS / "encoder",
            "config.json",
            {"model_type": "albert"},
            "model_type is 'albert'",
        ),
        (
            TRANSFORMERS / "encoder",
            "config.json",
            {"hidden_size": 64},
            r"has the shape \[70, 32\], but the configuration says \[70, 64\]",
        ),
        (
            TF_MODELS / "encoder",
            "bert_config.json",
            {"num_hidden_layers": 3},
            "lacks 16 of the encoder's weights",
        ),
    ],
)
def test_another_architecture_or_other_sizes_are_one_sentence(tmp_path, source, file, change, why):
    shutil.copytree(source, tmp_path / "model")
    path = tmp_path / "model" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=why):
        find_model(tmp_path / "model", do_lower_case=None, needs_text=False)


@pytest.mark.parametrize("names", [["no", "yes"], {"no": 0, "yes": 1}, {"0": "no", "2": "yes"}])
def test_labels_that_are_not_numbered_are_refused(names):
    config = BertConfig(vocab_size=9, extra={"id2label": names})
    with pytest.raises(UserError, match="id2label does not name its labels by the numbers from 0"):
        named_labels(config, 2)
    assert named_labels(config, 0) == ()
