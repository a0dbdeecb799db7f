"""What follows the last token of an answer without being seen is none of the answer."""

import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.tasks.questions.answers import dropped_at_the_end, visible_end

UNSEEN = "\u200b\u00ad\u2060\ufeff\x00\x07\ufffd"


@pytest.mark.parametrize(
    ("span", "kept"),
    [
        ("rain", "rain"),
        ("rain\u00ad\u2060\x00\x07", "rain"),
        ("cafe\u0301", "cafe\u0301"),  # the accent is of the token
        ("☂\ufe0f", "☂\ufe0f"),
    ],
)
def test_the_answer_ends_with_a_character_of_its_last_token(span, kept):
    text = f"It {span}{UNSEEN}"
    assert text[3 : visible_end(text, 3, 3 + len(span))] == kept


@given(st.text(st.sampled_from("a \u0301雨" + UNSEEN), max_size=8))
def test_a_graph_cuts_the_same(text):
    kept = text[: visible_end(text, 0, len(text))]
    assert re.sub(dropped_at_the_end(), "", text) == kept
    found = tf.strings.regex_replace(text.encode(), dropped_at_the_end(), "").numpy()
    assert found.decode() == kept
