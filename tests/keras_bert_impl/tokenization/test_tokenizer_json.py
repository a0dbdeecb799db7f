import json

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.tokenizer_json import read_tokenizer_json
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

PIECES = [*SPECIAL_TOKENS, "word", "##s"]


def write(folder, **changes):
    values = {
        "model": {"type": "WordPiece", "vocab": {p: n for n, p in enumerate(PIECES)}},
        "added_tokens": [{"content": "[PAD]", "id": 0}],
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None},
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**values, **changes}))
    return path


def test_pieces_and_casing_are_read(tmp_path):
    file = read_tokenizer_json(write(tmp_path))
    assert file.pieces == tuple(PIECES)
    assert (file.do_lower_case, file.strip_accents) == (True, None)
    assert Vocabulary.load(tmp_path / "tokenizer.json") == Vocabulary(PIECES)


def test_added_tokens_have_their_ids(tmp_path):
    file = read_tokenizer_json(write(tmp_path, added_tokens=[{"content": "stent", "id": 7}]))
    assert file.pieces == (*PIECES, "stent")


@pytest.mark.parametrize("normalizer", [None, {"type": "Sequence", "normalizers": []}])
def test_casing_that_is_not_said_is_not_guessed(tmp_path, normalizer):
    assert read_tokenizer_json(write(tmp_path, normalizer=normalizer)).do_lower_case is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"type": "BPE", "vocab": {}}}, "no WordPiece tokenizer but BPE"),
        ({"model": None}, "none that is known"),
        ({"added_tokens": [{"content": "far", "id": 99}]}, "do not have the ids from 0 to 7"),
        ({"added_tokens": [{"content": "twice", "id": 0}]}, "each once"),
        ({"added_tokens": [{"content": "list", "id": [7]}]}, "do not have the ids from 0 to 7"),
        ({"added_tokens": [{"content": "true", "id": True}]}, "do not have the ids from 0 to 7"),
        ({"model": {"type": "WordPiece", "vocab": {"a": [0]}}}, "do not have the ids from 0"),
        ({"added_tokens": 5}, "its added_tokens are no list"),
        ({"added_tokens": [{"content": "\ud800", "id": 7}]}, r"piece '\\ud800' is no text"),
        (
            {"normalizer": {"type": "BertNormalizer", "handle_chinese_chars": False}},
            "handle_chinese_chars is false",
        ),
    ],
)
def test_another_tokenizer_is_refused_in_one_sentence(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        read_tokenizer_json(write(tmp_path, **changes))
