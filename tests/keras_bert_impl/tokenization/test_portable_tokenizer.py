"""The tokenizer of clients in other languages cuts every text as ours does."""

import numpy as np
import pytest

from keras_bert_impl.tokenization.added_tokens import AddedToken
from keras_bert_impl.tokenization.model_files import read_tokenizer_json
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer, usual_tokenizer
from keras_bert_impl.tokenization.text_settings import Casing, TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.tokenization import alphabet_vocabulary, by_line

LONG_WORD = "ab" * 75  # more than the 100 characters at which other tokenizers give up
CASED = TextSettings(Vocabulary([*SPECIAL_TOKENS, "The", "a", "##b", "##a", "é", "[", "]"]), False)
TEXTS = [
    "The dog runs , a list .",
    "",
    f"a {LONG_WORD}",
    "a [MASK] dog [SEP]",
    "É cafés",
    "the cat sleeps " * 20,
    "\uf0b7 the dogs\u061d a",  # a bullet of Word's, a mark of Unicode 14
]
PAIRS = [("the dog", "a cat runs ."), ("the dog runs , " * 9, "a cat"), ("a", "the cat . " * 9)]


@pytest.mark.parametrize("text", [TextSettings(WORD_VOCABULARY), CASED])
@pytest.mark.parametrize("special_tokens", ["split", "keep"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS])
def test_the_clients_rows_are_those_of_the_tokenizer(text, special_tokens, texts):
    expected = Tokenizer(text, special_tokens)(texts, max_seq_length=16)
    rows = client_tokenizer(text, 16, special_tokens == "keep").encode_batch(texts)
    found = {
        "input_ids": [row.ids for row in rows],
        "input_mask": [row.attention_mask for row in rows],
        "segment_ids": [row.type_ids for row in rows],
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(True, True), (False, False)])
def test_every_code_point_is_cut_alike(options):
    """Inside a word and alone; beyond the first two planes there are few kinds."""
    text = TextSettings(alphabet_vocabulary(), *options)
    tokenizer, ours = client_tokenizer(text, 9, False), Tokenizer(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    numbers = [*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 37)]
    parts = [f"a{chr(number)}b c {chr(number)}" for number in numbers]
    lines = [" ".join(parts[start : start + 256]) for start in range(0, len(parts), 256)]
    for start in range(0, len(lines), 256):  # all tokens of all lines take half a gigabyte
        some = lines[start : start + 256]
        rows = tokenizer.encode_batch_fast(some, add_special_tokens=False)
        for row, expected in zip(rows, by_line(ours.encode_lines(some)), strict=True):
            assert row.ids == expected


@pytest.mark.parametrize(
    "settings",
    [
        TextSettings(WORD_VOCABULARY, do_lower_case=True, strip_accents=False, longest_word=100),
        TextSettings(WORD_VOCABULARY, do_lower_case=False, strip_accents=False, unicode_form="nfc"),
        Casing(False, True, added=(AddedToken("<name>", lstrip=True),)).settings(WORD_VOCABULARY),
    ],
)
def test_the_usual_form_is_read_again_as_it_was(tmp_path, settings):
    usual_tokenizer(settings).save(str(tmp_path / "tokenizer.json"))
    read = read_tokenizer_json(tmp_path / "tokenizer.json", framed=False)
    assert read.casing.settings(Vocabulary(read.tokens)) == settings
