import bz2
import contextlib
import encodings as python_encodings
import gzip
import io
import lzma
import os
import pkgutil
import random
import threading
import unicodedata
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora import encodings
from pipelines.corpora.encodings import (
    UTF_8,
    TextEncoding,
    beginning_of_text,
    decode,
    lines_of,
    read_line_blocks,
    read_whole,
)
from pipelines.pretraining_data.documents import FileBlock
from pipelines.pretraining_data.documents import read_lines as read_sentences
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


@pytest.mark.parametrize(
    ("asked", "meant", "text"),
    [
        ("euc-kr", "cp949", "한국어\n똠방각하\n"),
        ("shift_jis", "cp932", "日本\n①番\n"),
        ("gb2312", "gb18030", "中国\n朱镕基\n"),
    ],
)
def test_the_wider_encoding_that_is_meant_is_named(tmp_path, asked, meant, text):
    path, encoding = tmp_path / "a.txt", TextEncoding(encoding=asked)
    name = written(path, text, meant)
    sentence = rf"a\.txt: line 2 is not {asked}.*; try `encoding={meant}`, which has more"
    with pytest.raises(UserError, match=sentence):
        list(read_lines(path, encoding))
    with pytest.raises(UserError, match=sentence):
        read_sentences(FileBlock(name, 0, 99), path.read_bytes(), encoding)
    assert [line for _, line in read_lines(path, TextEncoding(encoding=meant))] == text.split()
    path.write_bytes(b"\n\x82\n")
    with pytest.raises(UserError, match=r"; correct it, or give another `encoding`\.$"):
        list(read_lines(path, encoding))


NAMES = sorted({one.name for one in pkgutil.iter_modules(python_encodings.__path__)} | {"locale"})[
    ::8
]


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


KOREAN = "첫 문장이다. 둘째 문장이다.\n" * 5


@given(st.binary(max_size=8))
def test_a_few_ill_formed_bytes_are_dropped(few):
    data = b"a" * 30 + few
    assert decode("x", 1, data) == data.decode("utf-8", "ignore")


def test_bytes_that_are_left_out_are_told_once_a_file(caplog):
    for line in (1, 9):
        decode(f"{__file__}.txt", line, b"a\n" * 300 + b"\xff\xfe")
    (said,) = caplog.messages
    assert said.startswith(f"{__file__}.txt: 2 bytes from line 301 on are not UTF-8")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(KOREAN, "cp949"), ("Ça va être l'été à Nîmes.\n" * 5, "latin-1"), ("Plain.\n", "utf-16-le")],
)
def test_another_encoding_is_refused_with_the_file_and_what_to_do(text, encoding):
    sentence = (
        r"^x\.txt: is not UTF-8, the encoding that is needed \(from line 7 on, \d+% .*\); convert "
        r"the file \(iconv -f ITS_ENCODING -t UTF-8\) .*\.$"
    )
    with pytest.raises(UserError, match=sentence):
        decode("x.txt", 7, text.encode(encoding))


TEXT = "".join(f"line {number} é\n" for number in range(2000)).encode()
PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_files_are_read_like_plain_ones(tmp_path, ending):
    path = tmp_path / f"text.txt{ending}"
    path.write_bytes(PACKERS[ending](TEXT))
    blocks = list(read_line_blocks(str(path), block_bytes=1000))
    assert len(blocks) > 10
    assert b"".join(block.text for block in blocks) == TEXT
    assert all(block.text.endswith(b"\n") for block in blocks)
    assert sum(block.packed_bytes for block in blocks) == path.stat().st_size


@given(st.lists(st.text("ab\r", max_size=5), min_size=1), st.integers(1, 9), st.booleans())
def test_blocks_are_whole_lines_and_know_their_number(tmp_path_factory, lines, size, ends):
    path = tmp_path_factory.mktemp("blocks") / "text"
    path.write_bytes(("\n".join(lines) + "\n" * ends or "\n").encode())
    if path.stat().st_size == 0:
        return
    seen = 0
    for block in read_line_blocks(str(path), size):
        assert block.first_line == seen + 1
        seen += block.text.count(b"\n")


def test_a_zip_archive_is_refused_whatever_its_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "text.gz", "w") as archive:
        archive.writestr("text.txt", TEXT)
    with pytest.raises(UserError, match=r"text\.gz: is a zip archive; unpack it"):
        list(read_line_blocks(str(tmp_path / "text.gz")))


def test_a_workbook_of_excel_is_to_be_saved_as_csv(tmp_path):
    (tmp_path / "reviews.xlsx").write_bytes(b"PK\x03\x04" + bytes(99))
    with pytest.raises(UserError, match=r"s\.xlsx: is an Excel workbook; save it as CSV UTF-8"):
        list(read_line_blocks(str(tmp_path / "reviews.xlsx")))


@pytest.mark.parametrize("asked", ["cp949", "euc-kr", "latin-1"])
def test_utf_8_is_told_where_another_encoding_is_given(tmp_path, asked):
    path, encoding = tmp_path / "a.csv", TextEncoding(encoding=asked)
    path.write_text("text,label\n", encoding="utf-8-sig")
    with pytest.raises(UserError, match=r"a\.csv: is UTF-8 \(by its byte-order mark\); leave"):
        list(read_lines(path, encoding))
    assert list(read_lines(path, TextEncoding(encoding="utf-8-sig"))) == [(1, "text,label")]


@pytest.mark.parametrize(("encoding", "order"), [("UTF-16", "le"), ("UTF-32", "be")])
def test_another_form_of_unicode_is_refused(tmp_path, encoding, order):
    (tmp_path / "text").write_bytes("\ufeffText.".encode(f"{encoding}-{order}"))
    with pytest.raises(UserError, match=f"text: is {encoding}; convert it to UTF-8"):
        list(read_line_blocks(str(tmp_path / "text")))


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_a_damaged_archive_is_named(tmp_path, ending):
    packed = PACKERS[ending](TEXT)
    path = tmp_path / f"text{ending}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match=rf"text{ending}: cannot be unpacked \(.+\)"):
        list(read_line_blocks(str(path)))


@pytest.mark.parametrize("ending", ["", ".xz"])
@pytest.mark.parametrize("size", [100, 4000])
def test_a_line_that_never_ends_is_refused_by_its_number(tmp_path, monkeypatch, ending, size):
    monkeypatch.setattr(encodings, "MOST_LINE_BYTES", 5000)
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACKERS[ending](b"one\ntwo\n" + b"x" * 4999 + b"\nfour\n"))
    assert sum(block.text.count(b"\n") for block in read_line_blocks(str(path), size)) == 4
    path.write_bytes(PACKERS[ending](b"one\ntwo\n" + b"x" * 5000 + b"\nfour\n"))
    with pytest.raises(UserError, match=r"text\S*: line 3 has more than \d+ MiB"):
        list(read_line_blocks(str(path), size))


@pytest.mark.parametrize("ending", [ending for ending in PACKERS if ending])
@pytest.mark.parametrize(
    "read", [read_whole, lambda path: [*read_line_blocks(path)]], ids=["whole", "lines"]
)
def test_a_bomb_is_refused(tmp_path, monkeypatch, ending, read):
    monkeypatch.setattr(encodings, "_SMALL_BYTES", 1 << 20)
    path = tmp_path / f"bomb{ending}"
    path.write_bytes(PACKERS[ending](b"a b c\n" * ((3 << 20) // 6)))
    with pytest.raises(UserError, match=r"bomb\S+: (unpacks to more than 200 times|line 1 has)"):
        read(str(path))


def test_a_file_that_is_read_at_once_has_a_bound(tmp_path):
    (tmp_path / "a.json").write_bytes(b"x" * (1 << 20))
    assert len(read_whole(str(tmp_path / "a.json"), 1 << 20)) == 1 << 20
    (tmp_path / "a.json").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(UserError, match=r"a\.json: has more than 1 MiB"):
        read_whole(str(tmp_path / "a.json"), 1 << 20)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_stream_is_read_from_its_beginning_though_that_was_looked_at(tmp_path, ending):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[PACKERS[ending](TEXT)])
    writer.start()
    assert beginning_of_text(str(path)).startswith(b"line 0 ")
    blocks = list(read_line_blocks(str(path), block_bytes=1000, stream=True))
    writer.join()
    assert b"".join(block.text for block in blocks) == TEXT
    assert sum(block.packed_bytes for block in blocks) == len(PACKERS[ending](TEXT))
