"""Words and lines of texts in a graph, held to `str.split`."""

import re

import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.tasks.tagging.served import text_characters

TEXTS = st.lists(st.text("ab한😀.,( \t\n\u00a0\u3000é", max_size=12), min_size=1, max_size=4)


def words_of(texts, found):
    """The words of all texts by the characters that were found."""
    together = "".join(texts)
    starts, ends = found.word_start.numpy(), found.word_end.numpy()
    return [together[start:end] for start, end in zip(starts, ends, strict=True)]


@given(TEXTS)
def test_words_stand_between_blanks(texts):
    found = text_characters(tf.constant(texts))
    expected = [word for text in texts for word in re.findall("[^ \t\r\n]+", text)]
    assert words_of(texts, found) == expected
    assert found.position.numpy().tolist() == [n for text in texts for n in range(len(text))]


@given(TEXTS)
def test_marks_at_a_words_ends_are_words_on_demand(texts):
    found = text_characters(tf.constant(texts), split_marks=True)
    expected = []
    for text in texts:
        for word in text.split():
            front, core, behind = re.fullmatch(r"([.,(]*)(.*?)([.,(]*)", word).groups()
            expected += [*front, core, *behind] if core else [word]
    assert words_of(texts, found) == expected
