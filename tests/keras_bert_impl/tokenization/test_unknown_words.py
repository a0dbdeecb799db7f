"""The share of [UNK], held against the reference, and what is said where it is large."""

import functools
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter, check_words
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import alphabet_vocabulary, trouble_text

ENGLISH = Vocabulary([*SPECIAL_TOKENS, "The", "rain", "##y", "day", "is", "."], "en/vocab.txt")
KOREAN = Vocabulary([*SPECIAL_TOKENS, "비", "가", "##가", "온", "##다", "."], "ko/vocab.txt")
CASED = {"do_lower_case": False}

# Counted by hand: "The rainy day is gone." has 6 words of which one, "gone", has no tokens.
SENTENCE, WORDS, UNKNOWN = "The rainy day is gone.", 6, 1


@functools.cache
def tools_of(settings):
    """What cuts and what counts: made of a large vocabulary, they take longer than their work."""
    return PlainTokenizer(settings), WordCounter(settings.vocabulary)


def counted(lines, settings):
    tokenizer, counter = tools_of(settings)
    return counter.count(tokenizer.encode_lines(lines).ids)


def test_words_are_counted_once_whatever_their_tokens():
    assert counted([SENTENCE] * 3, TextSettings(ENGLISH, **CASED)) == WordCount(
        words=3 * WORDS, unknown=3 * UNKNOWN
    )


def test_what_frames_and_fills_a_row_is_no_word():
    row = np.array([[2, 5, 6, 7, 1, 3, 8, 4, 3, 0, 0]])  # [CLS] The rainy [UNK] [SEP] day [MASK]
    assert WordCounter(ENGLISH).count(row) == WordCount(words=4, unknown=1)
    assert WordCounter(ENGLISH).count(row.astype(np.uint16)) == WordCount(words=4, unknown=1)


SOME = Vocabulary([token for number, token in enumerate(alphabet_vocabulary().tokens)
                   if number < 5 or number % 3])  # fmt: skip


@given(trouble_text(), st.booleans(), st.booleans())
def test_the_count_of_ids_is_the_count_of_words_cut_one_by_one(text, lower, strip):
    if any(unicodedata.category(character) == "Cn" for character in text):
        return  # another Python knows other characters
    words = reference.split_words(text, lower, strip)
    unknown = sum(reference.split_tokens(word, SOME) == ["[UNK]"] for word in words)
    assert counted([text], TextSettings(SOME, lower, strip)) == WordCount(len(words), unknown)


@pytest.mark.parametrize(
    ("words", "unknown", "large", "refused"),
    [
        (100, 5, False, False),
        (100, 6, True, False),
        (100, 50, True, False),
        (100, 51, True, True),
        (49, 24, False, False),
        (49, 49, True, False),
        (50, 26, True, True),
    ],
)
def test_few_words_prove_little(words, unknown, large, refused):
    count = WordCount(words, unknown)
    assert (count.is_large, count.is_refused) == (large, refused)


def refusal(lines, settings):
    with pytest.raises(UserError) as error:
        check_words(lines, settings, "text.txt", may_refuse=True)
    return str(error.value)


def test_a_text_that_fits_is_passed_without_a_word(caplog):
    count = check_words(
        ["The rainy day."] * 30, TextSettings(ENGLISH, **CASED), "text.txt", may_refuse=True
    )
    assert count == WordCount(words=30 * 4, unknown=0)
    assert caplog.messages == []


def test_another_language_is_named_with_words_and_the_file():
    lines = [f"오늘 비가 온다 {'.' * (number % 2)} 우산 날씨 {number}" for number in range(30)]
    said = refusal(lines, TextSettings(ENGLISH, **CASED))
    # 6 words and a full stop on every second line: 180 of 195 are [UNK].
    assert said == (
        "text.txt: 92.3 % of the words of a sample become [UNK] with en/vocab.txt (오늘, 비가, "
        "온다): the vocabulary seems to be of another language than the text, or to lack many of "
        "its characters; take a model, or learn a vocabulary, for the text; or give "
        "`allow_unknown_words=True` to go on all the same."
    )


ACCENTS = Vocabulary([*SPECIAL_TOKENS, "naïve", "café"])
OTHER_FORMS = {
    "unicode_form=nfc": (unicodedata.normalize("NFD", "비 비가 온다 "), KOREAN, False),
    "do_lower_case=False": ("비가 온다 온 ", KOREAN, True),
    "strip_accents=False": ("Naïve CAFÉ naïve ", ACCENTS, True),
}


@pytest.mark.parametrize("remedy", OTHER_FORMS)
def test_another_form_of_the_text_is_named(remedy):
    line, vocabulary, lower = OTHER_FORMS[remedy]
    assert f"; give `{remedy}`" in refusal([line * 20], TextSettings(vocabulary, lower))


def test_up_to_half_is_only_a_warning(caplog):
    lines = [f"The rainy day is gone{'.' * n}" for n in range(20)]
    count = check_words(lines, TextSettings(ENGLISH, **CASED), "text.txt", may_refuse=True)
    # 5 words and 0 to 19 full stops a line.
    assert count == WordCount(words=20 * 5 + 190, unknown=20)
    (said,) = caplog.messages
    assert said.startswith("text.txt: 6.9 % of the words of a sample become [UNK] with en/vocab")
    assert "allow_unknown_words" not in said


def test_only_the_beginning_is_read():
    def endless():
        while True:
            yield "The rainy day"

    count = check_words(endless(), TextSettings(ENGLISH, **CASED), "text.txt", may_refuse=True)
    assert count == WordCount(words=3000, unknown=0)
    long = check_words(["day " * 10**6], TextSettings(ENGLISH, **CASED), "x", may_refuse=True)
    assert long == WordCount(words=50_000, unknown=0)


def test_a_word_over_the_models_own_limit_is_named(caplog):
    settings = TextSettings(Vocabulary([*SPECIAL_TOKENS, "a", "##a"]), longest_word=100)
    check_words(["a" * 150], settings, "text.txt", may_refuse=False)
    assert f"({'a' * 20})" in caplog.text
