import json

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.tasks.starting_point import find_starting_point
from tests.support.model_folders import WORD_VOCABULARY, tiny_config, write_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("start") / "model")


@pytest.fixture
def flags(tmp_path):
    """A configuration and a vocabulary as files of their own."""
    config, vocabulary = tmp_path / "bert_config.json", tmp_path / "vocab.txt"
    config.write_text(json.dumps(tiny_config().to_google()))
    WORD_VOCABULARY.write(vocabulary)
    return {"bert_config_file": str(config), "vocab_file": str(vocabulary)}


def test_a_model_directory_brings_everything(folder):
    start = find_starting_point(folder)
    assert start.config == tiny_config()
    assert start.text == TextSettings(WORD_VOCABULARY)
    assert start.checkpoint == str(folder)
    assert start.tokenizer().tokenize("The dog") == ["the", "dog"]


def test_without_checkpoint_configuration_and_vocabulary_come_from_flags(flags):
    start = find_starting_point(None, **flags, do_lower_case=False)
    assert (start.checkpoint, start.text.do_lower_case) == (None, False)
    assert start.config == tiny_config()


def test_text_is_lower_cased_unless_something_says_otherwise(flags):
    assert find_starting_point(None, **flags).text.do_lower_case is True


@pytest.mark.parametrize("missing", ["bert_config_file", "vocab_file"])
def test_what_is_missing_is_named(flags, missing):
    with pytest.raises(UserError, match=f"--{missing} is missing"):
        find_starting_point(None, **{**flags, missing: None})


def test_a_casing_that_contradicts_the_directory_is_refused(folder):
    with pytest.raises(UserError, match="--do_lower_case=false contradicts"):
        find_starting_point(folder, do_lower_case=False)


def test_a_configuration_that_the_weights_do_not_bear_out_is_refused(folder, flags, tmp_path):
    config = {**tiny_config().to_google(), "vocab_size": 10**12}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"the configuration says \[1000000000000, 16\]"):
        find_starting_point(folder, bert_config_file=flags["bert_config_file"])


def test_a_vocabulary_that_is_too_large_is_refused(folder, tmp_path):
    path = tmp_path / "large.txt"
    path.write_text("\n".join([*WORD_VOCABULARY.pieces, "extra"]) + "\n")
    with pytest.raises(UserError, match=r"large\.txt: has 18 pieces, but the model only knows 17"):
        find_starting_point(folder, vocab_file=str(path))


@pytest.mark.parametrize(("length", "sentence"), [(13, "12 positions"), (4, "5 or more")])
def test_lengths_out_of_range_are_refused(folder, length, sentence):
    with pytest.raises(UserError, match=sentence):
        find_starting_point(folder).check_length(length)
