import json

import pytest

from keras_bert_impl.checkpoints.text_files import (
    foreign_tokenizer,
    read_casing,
    refuse_foreign_tokenizer,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import Casing
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenizer_files import write_tokenizer_json


def settings(folder, **values):
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


WORDS = ["the", "dog", "[E1]", "e"]


def fast_tokenizer(folder, lowercase, strip_accents=None, tokens=SPECIAL_TOKENS, added=()):
    casing = {"lowercase": lowercase, "strip_accents": strip_accents}
    write_tokenizer_json(folder, tokens, added=added, **casing)


def test_an_empty_folder_says_nothing(tmp_path):
    assert read_casing(tmp_path) == Casing(None, None)
    assert foreign_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    ("said", "casing"),
    [
        ({"do_lower_case": True}, (True, None)),
        ({"do_lower_case": False, "strip_accents": True}, (False, True)),
        ({"do_lower_case": None}, (None, None)),
        ({"model_max_length": 512}, (None, None)),
        ({"do_lower_case": False, "unicode_form": "nfc"}, (False, None, "nfc")),
    ],
)
def test_tokenizer_config_says_casing_and_accents(tmp_path, said, casing):
    settings(tmp_path, **said)
    assert read_casing(tmp_path) == Casing(*casing)


@pytest.mark.parametrize(
    ("said", "lowercase", "strip_accents"),
    [
        ({"do_lower_case": False}, True, None),
        ({"do_lower_case": True}, True, False),
        ({"strip_accents": False}, False, True),
    ],
)
def test_files_that_contradict_each_other_are_refused(tmp_path, said, lowercase, strip_accents):
    settings(tmp_path, **said)
    fast_tokenizer(tmp_path, lowercase, strip_accents)
    with pytest.raises(UserError, match=r"tokenizer\.json: lower-cases text .*; correct one"):
        read_casing(tmp_path)


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


def test_what_sentence_transformers_wrote_into_the_tokenizer_is_one_with_its_settings(tmp_path):
    settings(tmp_path, do_lower_case=False)
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    fast_tokenizer(tmp_path, False)
    assert read_casing(tmp_path)[:2] == (True, False)


def test_tokenizer_json_speaks_where_the_other_is_silent(tmp_path):
    fast_tokenizer(tmp_path, False, True)
    assert read_casing(tmp_path)[:2] == (False, True)
    settings(tmp_path, strip_accents=True)
    assert read_casing(tmp_path)[:2] == (False, True)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["the", "cat"], r"token 6 is 'cat', but tokenizer\.json beside it has 'dog'"),
        (["the", "dog", "cat"], "token 7 is 'cat', but .* has missing; remove"),
        (["the"], "token 6 is missing, but .* has 'dog'"),
    ],
)
def test_another_vocabulary_beside_tokenizer_json_is_refused(tmp_path, words, fault):
    fast_tokenizer(tmp_path, True, tokens=[*SPECIAL_TOKENS, "the", "dog"])
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *words]))
    with pytest.raises(UserError, match=fault):
        read_casing(tmp_path)


FLAGS = {"lstrip": False, "rstrip": False, "single_word": False}
PLACES = {
    "tokenizer_config.json": [
        {"added_tokens_decoder": {"7": {"content": "[E1]", "special": True, **FLAGS}}},
        {"additional_special_tokens": ["[E1]", "[CLS]"]},
        {"extra_special_tokens": {"entity_token": "[E1]"}},
        {"entity_token": "[E1]"},
        {"bos_token": {"content": "[E1]", "__type": "AddedToken", "normalized": False, **FLAGS}},
    ],
    "special_tokens_map.json": [{"additional_special_tokens": ["[E1]"], "cls_token": "[CLS]"}],
    "added_tokens.json": [{"[E1]": 7}],
}


@pytest.mark.parametrize(
    ("name", "said"), [(name, said) for name, all_said in PLACES.items() for said in all_said]
)
@pytest.mark.parametrize("known", [True, False])
def test_added_tokens_are_taken_out_of_the_text_wherever_they_are_said(tmp_path, name, said, known):
    tokens = [*SPECIAL_TOKENS, *(WORDS if known else WORDS[:2])]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    settings(tmp_path, do_lower_case=True)
    path = tmp_path / name
    beside = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**beside, **said}))
    text = read_casing(tmp_path).settings(Vocabulary.load(tmp_path / "vocab.txt"))
    assert PlainTokenizer(text).encode_lines(["[E1] the dog"]).ids.tolist() == [7, 5, 6]


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ({"[E1]": 9}, r"\[E1\]' has the id 7 in one file and 9 in another"),
        ({"far": 99}, "'far' has the id 99 in a file beside it, but would be 9 here"),
        ({"[E1]": "x"}, r"\[E1\] is 'x'; it must be a whole number"),
    ],
)
def test_ids_that_do_not_fit_are_refused(tmp_path, added, words):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *WORDS]))
    settings(tmp_path, added_tokens_decoder={"7": {"content": "[E1]"}}, do_lower_case=True)
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    with pytest.raises(UserError, match=words):
        read_casing(tmp_path).settings(Vocabulary.load(tmp_path / "vocab.txt"))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"strip_accents": "no"}, "strip_accents is 'no'; it must be true"),
        ({"do_lower_case": "yes"}, "do_lower_case is 'yes'; it must be true"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars is False"),
        ({"unicode_form": "NFKC"}, "unicode_form is 'NFKC'; it must be"),
        ({"cls_token": "<s>"}, r"cls_token is '<s>', but only \[CLS\] is followed"),
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
