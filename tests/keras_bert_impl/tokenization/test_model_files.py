"""What a model's files say of its tokens is followed as their library does, or refused."""

import json

import pytest
import tokenizers
from tokenizers import AddedToken

from keras_bert_impl.checkpoints.text_files import read_casing
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.model_files import KEYS, check_keys, read_tokenizer_json
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.text_settings import Casing
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tiny_bert import GOLDEN
from tests.support.tokenization import by_line
from tests.support.tokenizer_files import write_tokenizer_json

TOKENS = [*SPECIAL_TOKENS, "word", "##s", "é", "e", "É", "東", "##京"]
TEXTS = ["Words wORD É e\u0301 東京", "e\u0301", "word\u00a0s"]
BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": False,
}


def test_every_key_that_the_libraries_write_is_in_the_table():
    written = json.loads((GOLDEN / "model_files/written_keys.json").read_text())["keys"]
    assert {kind: {*keys} - {*KEYS[kind]} for kind, keys in written.items()} == {
        kind: set() for kind in KEYS
    }


def sequence(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


@pytest.mark.parametrize(
    "normalizer",
    [
        BERT,
        {**BERT, "lowercase": True},
        {**BERT, "lowercase": True, "strip_accents": False},
        sequence(BERT),
        sequence({"type": "NFC"}, BERT),
        sequence({"type": "Lowercase"}, BERT),  # as sentence-transformers writes it
        sequence({"type": "NFC"}, sequence({"type": "Lowercase"}, BERT)),
    ],
)
def test_normalizers_that_are_followed_give_the_library_s_tokens(tmp_path, normalizer):
    path = write_tokenizer_json(tmp_path, TOKENS, {"normalizer": normalizer})
    text = read_casing(tmp_path).settings(Vocabulary.load(path))
    judge = tokenizers.Tokenizer.from_file(str(path))
    expected = [judge.encode(line, add_special_tokens=False).ids for line in TEXTS]
    assert [PlainTokenizer(text).encode_lines([line]).ids.tolist() for line in TEXTS] == expected


@pytest.mark.parametrize("longest", [100, 200, 7])
def test_longer_words_than_the_file_says_are_unknown(tmp_path, longest):
    changes = model(max_input_chars_per_word=longest)
    path = write_tokenizer_json(tmp_path, TOKENS, changes, lowercase=False)
    text = read_casing(tmp_path).settings(Vocabulary.load(path))
    assert Casing.taken_from(text.as_json()).settings(text.vocabulary) == text
    judge = tokenizers.Tokenizer.from_file(str(path))
    lines = [f"{first}{'s' * n} word" for first in "eé" for n in (5, 6, 7, 98, 99, 100, 199, 200)]
    expected = [judge.encode(line, add_special_tokens=False).ids for line in lines]
    for tokenizer in (PlainTokenizer(text), Tokenizer(text), client_tokenizer(text, 500, False)):
        assert ids_of(tokenizer, lines) == expected
    assert GraphTokenizer(text)(lines).to_list() == expected


def ids_of(tokenizer, lines):
    if hasattr(tokenizer, "encode_lines"):
        return by_line(tokenizer.encode_lines(lines))
    tokenizer.no_padding()
    return [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]


def model(**changes):
    ids = {token: number for number, token in enumerate(TOKENS)}
    usual = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": ids, **usual, **changes}}


def added(**changes):
    return {"added_tokens": [{"content": "far", "id": len(TOKENS), **changes}]}


IDS = "do not have the ids from 0"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (model(type="BPE"), "model: type is 'BPE'; it must be"),
        ({"model": None}, "model: its content is None"),
        (model(vocab={"a": [0]}), r"model: vocab\.a is \[0\]"),
        (
            model(continuing_subword_prefix="@@"),
            "subword_prefix is '@@', but only '##' is followed",
        ),
        (model(max_input_chars_per_word=0), "max_input_chars_per_word is 0; it must be"),
        (model(unk_token="<unk>"), "unk_token is '<unk>', but only"),
        (
            model(dropout=0.1),
            r"model\.dropout \(0\.1\) is not known here and may change the tokens",
        ),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer is .*'Whitespace'"),
        ({"pre_tokenizer": None}, "pre_tokenizer is None, but only"),
        ({"normalizer": None}, "its normalizer is nothing"),
        (
            {"normalizer": sequence(*({"type": t} for t in ("NFD", "Lowercase", "StripAccents")))},
            "its normalizer is NFD, Lowercase, StripAccents, but only BertNormalizer",
        ),
        ({"normalizer": {**BERT, "clean_text": False}}, r"normalizer\.clean_text is False"),
        ({"normalizer": {**BERT, "handle_chinese_chars": False}}, "handle_chinese_chars is False"),
        ({"post_processor": None}, "its post_processor does not make"),
        (
            {"post_processor": {"type": "BertProcessing", "sep": ["x", 3], "cls": ["[CLS]", 2]}},
            "its post_processor does not make",
        ),
        ({"truncation": {"direction": "Left"}}, "truncation.direction is 'Left'"),
        ({"new_rule": 1}, r"new_rule \(1\) is not known here"),
        (added(id=99), IDS),
        (added(id=0), IDS),
        (added(id=-1), IDS),
        (added(id=True), "id is True; it must be a whole"),
        (added(single_word=True), "single_word is True, but only False is followed"),
        (added(content=""), "has no content"),
        ({"added_tokens": ["far", 5]}, "1 is 5|added_tokens: 1: its content is 5"),
        (
            {"normalizer": {**BERT, "lowercase": True}, **added(normalized=False)},
            "'far' is not in the vocabulary, and words would be cut into it",
        ),
    ],
)
def test_rules_that_are_not_bert_s_are_refused_in_one_sentence(tmp_path, changes, words):
    path = write_tokenizer_json(tmp_path, TOKENS, changes)
    with pytest.raises(UserError, match=words):
        read_tokenizer_json(path)


def test_pairs_are_framed_as_the_template_of_transformers_says(tmp_path):
    token = lambda name, n: {"SpecialToken": {"id": name, "type_id": n}}  # noqa: E731
    text = lambda name, n: {"Sequence": {"id": name, "type_id": n}}  # noqa: E731
    first = [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)]
    template = {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, text("B", 1), token("[SEP]", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [TOKENS.index(name)], "tokens": [name]}
            for name in ("[CLS]", "[SEP]")
        },
    }
    read_tokenizer_json(write_tokenizer_json(tmp_path, TOKENS, {"post_processor": template}))
    template["pair"][-1] = token("[SEP]", 0)
    path = write_tokenizer_json(tmp_path, TOKENS, {"post_processor": template})
    with pytest.raises(UserError, match="does not make"):
        read_tokenizer_json(path)


def test_added_tokens_have_their_ids_and_flags(tmp_path):
    file = read_tokenizer_json(write_tokenizer_json(tmp_path, TOKENS, added=[AddedToken("[E]")]))
    assert file.tokens == (*TOKENS, "[E]")
    (token,) = file.casing.added
    assert (token.content, token.id, token.normalized) == ("[E]", len(TOKENS), True)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("tokenizer_config.json", {"never_split": ["x"]}, "never_split .* is not known here"),
        ("tokenizer_config.json", {"tokenize_chinese_chars": False}, "is False, but only True"),
        ("tokenizer_config.json", {"padding_side": "left"}, "is 'left', but only 'right'"),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": "x.Y"}}, "is not known here"),
        ("sentence_bert_config.json", {"query_length": 32}, "is 32, but only None"),
        ("config_sentence_transformers.json", {"truncate_dim": 64}, "is 64, but only None"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "SparseEncoder"),
        ("modules.json", {"kwargs": ["task"]}, "kwargs is"),
        ("Pooling", {"include_prompt": False}, "include_prompt is False"),
        ("config.json", {"text_prefix": "query: "}, "text_prefix .* may change the tokens"),
    ],
)
def test_a_key_that_could_change_a_token_is_refused(kind, values, words):
    with pytest.raises(UserError, match=words):
        check_keys("x.json", values, kind)


def test_keys_that_change_no_token_pass():
    check_keys(
        "x.json", {"never_split": None, "new": [], "image_token": "<i>"}, "tokenizer_config.json"
    )
    check_keys("x.json", {"gradient_checkpointing": True, "adapters": {"a": 1}}, "config.json")
