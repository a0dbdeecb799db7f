import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import (
    OPTIONS,
    alphabet_vocabulary,
    by_line,
    expected_ids,
    trouble_bytes,
    trouble_text,
)

ALPHABET = alphabet_vocabulary()
WORDS = Vocabulary(
    [
        *[*SPECIAL_TOKENS, "the", "word", "##s", ".", "cafe", "σ", "##ς", "##σ", "α"],
        *["[", "]", "mask", "\u1100", "##\u1161", "##\u11a8", "ab", "##ab", "a", "##b", "!"],
    ]
)


@pytest.fixture(scope="module")
def tokenizers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {options: Tokenizer(TextSettings(ALPHABET, *options)) for options in OPTIONS}


@pytest.fixture(scope="module")
def words():
    return Tokenizer(TextSettings(WORDS))


@pytest.fixture(scope="module")
def keeping():
    return Tokenizer(TextSettings(WORDS), special_tokens="keep")


@settings(max_examples=150, deadline=None)
@given(st.lists(trouble_text(), max_size=5), st.sampled_from(OPTIONS))
def test_any_text_is_cut_as_by_the_reference(tokenizers, lines, options):
    found = by_line(tokenizers[options].encode_lines(lines))
    assert found == expected_ids(lines, ALPHABET, *options) or lines == []


@settings(max_examples=150, deadline=None)
@given(st.lists(trouble_bytes(), min_size=1, max_size=5), st.sampled_from(OPTIONS))
def test_any_bytes_are_cut_as_by_the_reference(tokenizers, lines, options):
    found = by_line(tokenizers[options].encode_lines(lines))
    assert found == expected_ids(lines, ALPHABET, *options)


@pytest.mark.parametrize(
    "line",
    [
        "ΑΣ ΣΑΣ ΑΣ.Α ΑΣ' Σ'Α ΣΣΣ",
        "§ Σ § ΑΣ§",
        "é" * 150,  # 300 bytes, 150 characters
        "é" * 200 + " " + "é" * 201,
        "각" * 66 + " " + "각" * 67,  # 198 and 201 characters once decomposed
        "Σ" * 200 + "!" + "Σ" * 201,
        "😀" * 200,
        "a" * 200 + "!" + "b" * 201 + " ΑΣ",
    ],
)
@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_beyond_the_kernels_is_cut_as_by_the_reference(tokenizers, line, options):
    lines = ["a plain line", line, "", line + " b"]
    found = by_line(tokenizers[options].encode_lines(lines))
    assert found == expected_ids(lines, ALPHABET, *options)


def test_a_word_with_half_of_a_surrogate_pair_is_unknown(words):
    assert words.tokenize("the\ud800 word") == ["[UNK]", "word"]
    block = words.encode_lines_with_spans(["\ud800the word"], unit="characters")
    assert (block.starts.tolist(), block.ends.tolist()) == ([0, 5], [4, 9])


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("The  words.", ["The", "word", "s", "."]),
        ("\u200bthe\u0301 word", ["the\u0301", "word"]),  # an accent belongs to its letter
        ("CAF\u00c9.", ["CAF\u00c9", "."]),
        ("cafe\u0301\u0327 .", ["cafe\u0301\u0327", "."]),
        ("\u00e9 ΑΣ.", ["\u00e9", "Α", "Σ", "."]),
        ("각!", ["각", "각", "각", "!"]),  # three tokens share the syllable
        ("東 x" + "ab" * 101, ["東", "x" + "ab" * 101]),
        ("x\0y the\0", ["x\0y", "the\0"]),
    ],
)
def test_a_span_is_the_part_of_the_line_that_a_token_came_from(words, line, tokens):
    block = words.encode_lines_with_spans([line, line], unit="characters")
    spans = list(zip(block.starts.tolist(), block.ends.tolist(), strict=True))
    assert [line[start:end] for start, end in spans] == tokens * 2
    block = words.encode_lines_with_spans([line], unit="bytes")
    parts = [line.encode()[start:end] for start, end in zip(block.starts, block.ends, strict=True)]
    assert [part.decode() for part in parts] == tokens


def test_spans_count_the_bytes_of_what_is_no_utf8(words):
    block = words.encode_lines_with_spans([b"\xff\xffthe \xe4word"])
    assert (block.starts.tolist(), block.ends.tolist()) == ([2, 7], [5, 11])


@settings(max_examples=100, deadline=None)
@given(st.lists(trouble_text(), min_size=1, max_size=3), st.sampled_from(OPTIONS))
def test_spans_come_with_the_same_ids_and_cut_out_text_that_gives_the_token(
    tokenizers, lines, options
):
    tokenizer = tokenizers[options]
    block = tokenizer.encode_lines_with_spans(lines, unit="characters")
    assert block.ids.tolist() == tokenizer.encode_lines(lines).ids.tolist()
    for number, line in enumerate(lines):
        own = slice(block.offsets[number], block.offsets[number + 1])
        spans = list(zip(block.starts[own].tolist(), block.ends[own].tolist(), strict=True))
        assert all(0 <= start < end <= len(line) for start, end in spans)
        assert spans == sorted(spans)
        for id_, (start, end) in zip(block.ids[own], spans, strict=True):
            token = ALPHABET.tokens[id_].removeprefix("##")
            text = "".join(reference.split_words(line[start:end], *options))
            # A sigma alone has its middle form; a word over the limit is known as a whole only.
            assert id_ == 1 or token.replace("ς", "σ") in text.replace("ς", "σ")


def test_special_tokens_are_split_like_any_text_or_kept(words, keeping):
    line = "the [MASK] word[MASK].[mask] [SEP]"
    assert words.tokenize(line) == [
        *["the", "[", "mask", "]", "word", "[", "mask", "]", ".", "[", "mask", "]"],
        *["[", "[UNK]", "]"],
    ]
    assert keeping.tokenize(line) == (
        ["the", "[MASK]", "word", "[MASK]", ".", "[", "mask", "]", "[SEP]"]
    )


def test_text_around_a_kept_token_is_cut_on_its_own(keeping):
    lines = ["α[MASK]Σ", "Σ[MASK]ΑΣ", "[PAD][UNK][CLS][SEP][MASK]", "", "[MASK", "aab"]
    assert [keeping.tokenize(line) for line in lines] == [
        ["α", "[MASK]", "σ"],
        ["σ", "[MASK]", "α", "##ς"],
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        [],
        ["[", "mask"],
        ["a", "##ab"],
    ]
    assert by_line(keeping.encode_lines(lines)) == [keeping.encode(line) for line in lines]


def test_one_text_is_a_batch_of_one_and_none_is_an_empty_batch(words):
    assert words("the words")["input_ids"].tolist() == [[2, 5, 6, 7, 3]]
    assert words([])["input_ids"].shape == (0, 2)


def test_pairs_are_two_segments_and_long_ones_are_truncated(words):
    inputs = words([("the the the", "word"), ("word", "the")], max_seq_length=6)
    assert inputs["input_ids"].tolist() == [[2, 5, 5, 3, 6, 3], [2, 6, 3, 5, 3, 0]]
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    padded = words("the", "word", max_seq_length=8, pad_to_longest=False)
    assert padded["input_ids"].tolist() == [[2, 5, 3, 6, 3, 0, 0, 0]]


@pytest.mark.parametrize("texts", [["the", "words"], ("the",), np.array(["the", "words"])])
def test_several_texts_are_not_taken_for_one(words, texts):
    for cut in (words.encode, words.tokenize):
        with pytest.raises(
            UserError, match=r"^encode takes one text, not .*; for several texts call"
        ):
            cut(texts)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("the", "give a list of lines"),
        (None, "is None"),
        (["the", ("a", "b")], "text 1 is .* give"),
    ],
)
def test_what_is_no_list_of_lines_is_refused_before_it_is_cut(words, lines, sentence):
    for one in (words, PlainTokenizer(words.settings)):
        for cut in (one.encode_lines, one.encode_lines_with_spans):
            with pytest.raises(UserError, match=sentence):
                cut(lines)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"special_tokens": "keeps"}, "it must be one of split, keep"),
        ({"long_text": "headtail"}, "choose truncate, head_tail or windows"),
        ({"max_seq_length": 0}, "max_seq_length is 0; it must be 3 or more"),
        ({"max_seq_length": "12"}, "it must be a whole number"),
        ({"settings": "vocab.txt"}, r"'vocab.txt' is no TextSettings; give .*Vocabulary\.load"),
    ],
)
def test_a_mistyped_choice_is_not_taken_for_another_one(options, sentence):
    with pytest.raises(UserError, match=sentence):
        Tokenizer(**{"settings": TextSettings(WORDS), **options})


def test_a_call_s_choices_are_checked_likewise(words):
    assert words("the words", max_seq_length=np.int64(3))["input_ids"].tolist() == [[2, 5, 3]]
    with pytest.raises(UserError, match="max_seq_length is 0; it must be 3 or more"):
        words("the", max_seq_length=0)
    with pytest.raises(UserError, match="'character'; it must be one of bytes, characters"):
        words.encode_lines_with_spans(["the"], "character")


@pytest.mark.parametrize("number", [-1, len(WORDS)])
def test_a_number_that_is_no_token_s_is_named(words, number):
    assert words.detokenize(np.array([5, 6])) == "the word"
    with pytest.raises(UserError, match=f"^{number} is no id; those are 0 to "):
        words.detokenize([5, number])
