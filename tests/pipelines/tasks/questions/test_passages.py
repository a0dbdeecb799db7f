"""Passages, their words, and where answers stand in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.tasks.questions.files import Passage, PlacedText, Question
from tests.support.plain_questions import words_of


@given(
    st.text(alphabet=st.sampled_from("ab\t\n\r \u202f\u00a0\u2028\U0001f600\ud800"), max_size=30)
)
def test_words_are_those_of_the_plain_rule(text):
    passage = Passage("", text)
    words, word_of_character = words_of(text)
    assert passage.words == words
    assert passage.word_of_character.tolist() == word_of_character


@pytest.mark.parametrize(
    ("text", "start", "words"),
    [
        ("rained", 4, (1, 1)),
        ("rain", 4, (1, 1)),  # part of a word
        ("rained all", 4, (1, 2)),  # two blanks in the passage, one in the answer
        ("rained", 0, None),
        ("all day", 14, None),  # ends after the passage
        ("day", -7, None),
        (" ", 2, None),
    ],
)
def test_an_answer_stands_where_it_is_said_to_or_nowhere(text, start, words):
    passage = Passage("", " It rained  all day")
    assert Question("x", "", passage, (PlacedText(text, start),)).answer_words == words
