import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.encoding import decode, refuse_other_unicode, say_what_was_dropped

KOREAN = "첫 문장이다. 둘째 문장이다.\n" * 5


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_utf8_is_decoded_whole(text):
    assert decode("x", 1, text.encode()) == (text, 0)


@given(st.binary(max_size=8))
def test_a_few_ill_formed_bytes_are_dropped_and_counted(few):
    data = b"a" * 30 + few
    text, dropped = decode("x", 1, data)
    assert text == data.decode("utf-8", "ignore")
    assert dropped == len(data) - len(text.encode())


def test_up_to_a_hundredth_of_ill_formed_bytes_are_dropped():
    assert decode("x", 1, b"a" * 9900 + b"\xff" * 100).dropped_bytes == 100
    with pytest.raises(UserError):
        decode("x", 1, b"a" * 9899 + b"\xff" * 101)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(KOREAN, "cp949"), ("Ça va être l'été à Nîmes.\n" * 5, "latin-1"), ("Plain.\n", "utf-16-le")],
)
def test_another_encoding_is_refused_with_the_file_and_what_to_do(text, encoding):
    sentence = (
        r"^x\.txt: is not UTF-8, the encoding that is needed \(from line 7 on, \d+% .*\); convert "
        r"it \(iconv -f ITS_ENCODING -t UTF-8\) .*\.$"
    )
    with pytest.raises(UserError, match=sentence):
        decode("x.txt", 7, text.encode(encoding))


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_a_byte_order_mark_names_the_encoding(encoding, order):
    start = f"\ufeff{KOREAN}".encode(f"{encoding}-{order}")
    with pytest.raises(UserError, match=rf"^x: is {encoding}; convert it to UTF-8 \(iconv -f "):
        refuse_other_unicode("x", start)


def test_what_was_dropped_is_said_if_there_was_any(caplog):
    with caplog.at_level(logging.INFO):
        say_what_was_dropped(0)
        assert caplog.messages == []
        say_what_was_dropped(3)
    assert caplog.messages[0].startswith("3 bytes of the input are no UTF-8 and were left out;")
