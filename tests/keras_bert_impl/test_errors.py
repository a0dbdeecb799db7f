from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import MOST_SHOWN, UserError, reading, shown


def test_a_users_error_is_no_error_of_the_programmer():
    """Whoever catches ValueError or OSError around a call must not swallow a user's message."""
    assert UserError.__mro__[1] is Exception
    assert str(UserError("vocab.txt: is empty.")) == "vocab.txt: is empty."


@given(st.recursive(st.text() | st.binary() | st.integers(), st.lists))
def test_what_a_file_holds_is_shown_on_one_short_line(value):
    assert len(shown(value)) <= MOST_SHOWN
    assert shown(value).isprintable()


def test_what_no_repr_can_write_is_shown_by_its_type():
    assert shown(10**9999) == "<int>"


@pytest.mark.parametrize("hidden", ["\x1b", "\0", "\u202e", "\u200f", "\u2066", "\ud83d", "\u2028"])
def test_control_characters_and_direction_marks_are_escaped_in_every_message(hidden):
    message = str(UserError(f"a{hidden}b.txt: is empty."))
    assert hidden not in message
    assert message.isprintable()


@pytest.mark.parametrize("letters", ["한글 배", "ﻼ سلام", "नमस्ते", "می\u200cخواهم", "👩🏽"])
def test_letters_of_any_script_stay_as_they_are(letters):
    assert letters in str(UserError(f"{letters}: is empty."))


def test_a_message_without_end_is_cut_in_its_middle():
    message = str(UserError(f"vocab.txt: {'x' * 100_000} is no token; remove it."))
    assert len(message) < 2000
    assert message.startswith("vocab.txt: x")
    assert message.endswith("x is no token; remove it.")


def test_a_word_without_end_is_cut_and_the_rest_of_the_sentence_stays():
    said = str(UserError(f"--size={'x' * 5000} is no size; give four numbers."))
    assert len(said) < 400
    assert said.startswith("--size=xxx")
    assert said.endswith("is no size; give four numbers.")


@pytest.mark.parametrize(
    ("reader", "cause"),
    [
        (lambda: {}["size"], "it has no 'size'"),
        (b"\xff".decode, "can't decode byte 0xff"),
        (lambda: int("many"), "invalid literal"),
        (lambda: [] + 1, "can only concatenate list"),
        (Path("/no/such/file").open, "No such file"),
        (lambda: nested(9**9), "recursion"),
    ],
)
def test_whatever_a_reader_stumbles_over_is_one_sentence_with_the_file(reader, cause):
    with pytest.raises(UserError) as error, reading("x.json", "a vocabulary", "get it again"):
        reader()
    assert str(error.value).startswith("x.json: cannot be read as a vocabulary (")
    assert cause in str(error.value)
    assert str(error.value).endswith("); get it again.")
    assert error.value.__cause__ is not None


def nested(levels):
    return [nested(levels - 1)]


class StopRequestedError(Exception):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, StopRequestedError, UserError])
def test_stops_and_sentences_pass_a_reader_as_they_are(kind):
    with pytest.raises(kind, match=r"^as it is$"), reading("x.json", "a vocabulary"):
        raise kind("as it is")
