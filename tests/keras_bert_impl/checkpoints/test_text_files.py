import json

import pytest

from keras_bert_impl.checkpoints.text_files import (
    foreign_tokenizer,
    read_casing,
    refuse_foreign_tokenizer,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import Casing
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS


def settings(folder, **values):
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


def fast_tokenizer(folder, **rules):
    ids = {token: number for number, token in enumerate(SPECIAL_TOKENS)}
    content = {
        "model": {"type": "WordPiece", "vocab": ids},
        "normalizer": {"type": "BertNormalizer", **rules},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))


def test_an_empty_folder_says_nothing(tmp_path):
    assert read_casing(tmp_path) == Casing(None, None)
    assert foreign_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    ("said", "casing"),
    [
        ({"do_lower_case": True}, (True, None)),
        ({"do_lower_case": False, "strip_accents": True}, (False, True)),
        ({"do_lower_case": None}, (None, None)),
        ({"do_lower_case": "yes"}, (None, None)),
        ({"model_max_length": 512}, (None, None)),
        ({"do_lower_case": False, "unicode_form": "nfc"}, (False, None, "nfc")),
    ],
)
def test_tokenizer_config_says_casing_and_accents(tmp_path, said, casing):
    settings(tmp_path, **said)
    assert read_casing(tmp_path) == Casing(*casing)


def test_tokenizer_config_comes_before_tokenizer_json(tmp_path):
    settings(tmp_path, do_lower_case=False)
    fast_tokenizer(tmp_path, lowercase=True, strip_accents=True)
    assert read_casing(tmp_path) == Casing(False, None)


@pytest.mark.parametrize(
    ("said", "casing"),
    [
        ({"do_lower_case": False}, (True, False)),
        ({"do_lower_case": False, "strip_accents": True}, (True, True)),
        ({"do_lower_case": True}, (True, None)),
    ],
)
def test_sentence_transformers_lower_cases_before_its_tokenizer(tmp_path, said, casing):
    settings(tmp_path, **said)
    path = tmp_path / "sentence_bert_config.json"
    path.write_text('{"max_seq_length": 128, "do_lower_case": true}')
    assert read_casing(tmp_path) == Casing(*casing)
    path.write_text('{"max_seq_length": 128, "do_lower_case": false}')
    assert read_casing(tmp_path).do_lower_case == said["do_lower_case"]


def test_tokenizer_json_speaks_where_the_other_is_silent(tmp_path):
    fast_tokenizer(tmp_path, lowercase=False, strip_accents=True)
    assert read_casing(tmp_path) == Casing(False, True)
    settings(tmp_path, strip_accents=False)
    assert read_casing(tmp_path) == Casing(False, False)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"strip_accents": "no"}, "strip_accents is 'no'; it must be true, false or null"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars is false"),
        ({"unicode_form": "NFKC"}, "unicode_form is 'NFKC'; it must be as_is or nfc"),
    ],
)
def test_what_bert_does_not_do_is_refused(tmp_path, said, words):
    settings(tmp_path, **said)
    with pytest.raises(UserError, match=words):
        read_casing(tmp_path)


@pytest.mark.parametrize("name", ["BertTokenizer", "PreTrainedTokenizerFast", None])
def test_tokenizers_with_bert_s_rules_are_not_foreign(tmp_path, name):
    settings(tmp_path, tokenizer_class=name)
    refuse_foreign_tokenizer(tmp_path)


def test_the_file_that_names_a_foreign_tokenizer_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}')
    assert foreign_tokenizer(tmp_path) == (tmp_path / "config.json", "BertJapaneseTokenizer")
    with pytest.raises(UserError, match=r"config\.json: its text is cut by BertJapaneseTokenizer"):
        refuse_foreign_tokenizer(tmp_path)
