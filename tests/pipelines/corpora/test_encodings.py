import contextlib
import encodings
import gzip
import io
import pkgutil
import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.corpora.unpacking import (
    beginning_of_text,
    lines_of,
    read_line_blocks,
    read_whole,
)
from pipelines.tables.files import open_table
from pipelines.tables.lines import read_lines, read_text

ALPHABETS = {
    "cp949": "가각힣뷁한국어 漢字ab,.",
    "euc-kr": "가각한국어 漢字ab,.",
    "cp932": "ひらがなカタカナ漢字ｱab,.",
    "euc_jp": "ひらがなカタカナ漢字ab,.",
    "iso2022_jp": "ひらがな漢字ab,.",
    "gb18030": "维基百科😀ḿab,.",
    "big5": "維基百科ab,.",
    "latin-1": "äöüßéab,.",
    "cp1251": "Википедия ab,.",
    "utf-16": "가é😀ab,.\u0d0a\u0a0d\u2028",
    "utf-16-be": "가é😀ab,.\u0d0a\u0a0d\u2028",
    "utf-32": "가é😀ab,.",
    "utf-8-sig": "가é😀ab,.",
    "utf-7": "가é+-ab,.",
}
NFC = TextEncoding(unicode_form="nfc")


def texts(alphabet):
    lines = st.lists(st.text(alphabet, max_size=12), min_size=1, max_size=8)
    return lines.filter(any)


@st.composite
def encoded_texts(draw):
    encoding = draw(st.sampled_from(sorted(ALPHABETS)))
    lines = draw(texts(ALPHABETS[encoding]))
    return encoding, lines, draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans())


def written(path, text, encoding):
    path.write_bytes(text.encode(encoding))
    return str(path)


@given(encoded_texts(), st.integers(1, 7))
def test_text_of_any_encoding_is_read_as_it_is_wherever_blocks_end(
    tmp_path_factory, case, block_bytes
):
    encoding, lines, end, ends = case
    path = tmp_path_factory.mktemp("text") / "a.txt"
    name = written(path, end.join(lines) + end * ends, encoding)
    blocks = list(read_line_blocks(name, block_bytes, encoding=TextEncoding(encoding=encoding)))
    found = [line.decode() for block in blocks for line in lines_of(block)]
    assert found == (lines if ends or lines[-1] else lines[:-1])
    for block in blocks:
        assert block.first_line == 1 + sum(
            b.text.count(b"\n") for b in blocks if b.first_line < block.first_line
        )


@pytest.mark.parametrize("name", ["cp94", "rot13", "", "a\0b"])
def test_what_is_no_encoding_of_files_is_unknown(name):
    with pytest.raises(UserError, match=r"^`encoding`: .* is unknown; "):
        TextEncoding(encoding=name)


@pytest.mark.parametrize(
    ("encoding", "bad"), [("utf-16-be", b"\xd8\x00\x00a"), ("cp932", b"\x82\n")]
)
def test_what_cannot_be_decoded_is_told_with_its_line(tmp_path, monkeypatch, encoding, bad):
    monkeypatch.setattr("pipelines.corpora.encodings._AT_ONCE", 1)
    path, line = tmp_path / "a.txt", "ab\n".encode(encoding)
    path.write_bytes(line * 41 + bad + line)
    encoding = TextEncoding(encoding=encoding)
    sentence = rf"a\.txt: line 42 is not {encoding.encoding} \(.*; correct it, or give another `enc"
    with pytest.raises(UserError, match=sentence):
        list(read_lines(path, encoding))


@pytest.mark.parametrize("own", ["utf-16-le", "utf-32-be", "utf-8"])
@pytest.mark.parametrize("asked", ["U16", "utf_32"])
def test_without_the_mark_that_tells_the_order_of_bytes_the_order_is_asked_for(
    tmp_path, monkeypatch, asked, own
):
    monkeypatch.setattr("pipelines.corpora.encodings._AT_ONCE", 1)
    path = tmp_path / "a.txt"
    path.write_bytes("한국어\n글\n".encode(own))
    sentence = r"a\.txt: line 1 is not .*\(utf-16 needs a byte-order mark, utf-16-le"
    with pytest.raises(UserError, match=sentence):
        list(read_lines(path, TextEncoding(encoding=asked)))


NAMES = sorted({one.name for one in pkgutil.iter_modules(encodings.__path__)} | {"locale"})[::8]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_python_calls_an_encoding_is_read_or_told_in_a_sentence(name):
    draw = random.Random(name)
    for data in (draw.randbytes(50), "aé가\n".encode("utf-16") * 9, b"a\r\n" * 99, b"", b"\n"):
        with contextlib.suppress(UserError):  # and nothing else
            encoding = TextEncoding(encoding=name)
            # Where blocks are cut at the byte of ASCII's line end, it must be one.
            assert not encoding.keeps_lines or b"a\n".decode(name) == "a\n"
            list(encoding.recoded_lines("a.txt", [data[:3], data[3:]]))


def test_packed_text_is_unpacked_before_it_is_recoded(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("하나\r\n둘\r\n".encode("utf-16")))
    encoding = TextEncoding(encoding="utf-16")
    assert list(read_lines(path, encoding)) == [(1, "하나"), (2, "둘")]
    assert beginning_of_text(str(path), encoding).decode() == "하나\r\n둘\r\n"
    assert read_whole(str(path), encoding=encoding).decode() == "하나\r\n둘\r\n"


@pytest.mark.parametrize("escaped", [False, True])
def test_decomposed_text_is_composed_in_lines_in_whole_texts_and_in_json(tmp_path, escaped):
    pieces = unicodedata.normalize("NFD", "한국어 é")
    name = written(tmp_path / "a.txt", f"{pieces}\n", "utf-8")
    assert list(read_lines(name, NFC)) == [(1, "한국어 é")]
    assert list(read_lines(name, UTF_8)) == [(1, pieces)]
    assert read_text(name, NFC) == "한국어 é\n"
    text = pieces.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00")
    json = f'{{"text": ["{text if escaped else pieces}"]}}\n'
    (record,) = open_table(written(tmp_path / "a.jsonl", json, "utf-8"), encoding=NFC).records()
    assert record.values == {"text": ["한국어 é"]}


@given(st.lists(st.text("가é😀ab", max_size=5), max_size=4), st.sampled_from(["cp949", "utf-16"]))
def test_a_stream_is_recoded_line_by_line(lines, encoding):
    lines = [line.replace("é", "e").replace("😀", "!") for line in lines]
    data = "".join(f"{line}\n" for line in lines).encode(encoding)
    parts = io.BytesIO(data)  # which cuts lines at bytes, in the middle of UTF-16's
    found = TextEncoding(encoding=encoding).recoded_lines("standard input", parts)
    assert [line.decode().rstrip("\n") for line in found] == lines
