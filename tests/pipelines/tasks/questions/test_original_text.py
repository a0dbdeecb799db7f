"""From tokens back to the passage's words; the recorded predictions hold the rest of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.reference import split_words
from keras_bert_impl.tokenization.text_settings import Casing
from pipelines.tasks.questions.answers import find_original_text

UNCASED, CASED = Casing(do_lower_case=True), Casing(do_lower_case=False)


@pytest.mark.parametrize(
    ("span", "words", "found"),
    [
        ("- 1943 )", "(1895-1943).", "-1943)"),
        ("steve smith", "Steve  Smith's", "Steve  Smith"),
        ("cafe", "the Cafe\u0301's", "the Cafe\u0301's"),  # one character more than the tokens
        ("[UNK] rain", "☂ rain", "☂ rain"),  # not in the text
        ("rain", "rain\u00a0fell", "rain\u00a0fell"),  # the no-break space is a character here
        ("東", "東京", "東"),
    ],
)
def test_the_span_is_found_among_the_words_or_all_of_them_are_given(span, words, found):
    assert find_original_text(span, words, UNCASED) == found


@given(
    st.text(alphabet=st.characters(codec="ascii"), max_size=20), st.sampled_from([UNCASED, CASED])
)
def test_a_span_of_the_texts_own_words_is_found_whole(text, casing):
    """ASCII texts go a way of their own, which must be the tokenizer's."""
    words = " ".join(text.split())
    normalized = split_words(words, casing.do_lower_case)
    if normalized and words.isprintable():
        assert find_original_text(" ".join(normalized), words, casing) == words
        assert find_original_text(normalized[0], words, casing) == words[: len(normalized[0])]
