import bz2
import gzip
import lzma
import os
import threading
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora import unpacking
from pipelines.corpora.unpacking import (
    beginning_of_text,
    decode,
    read_line_blocks,
    read_whole,
)

KOREAN = "첫 문장이다. 둘째 문장이다.\n" * 5


@given(st.binary(max_size=8))
def test_a_few_ill_formed_bytes_are_dropped(few):
    data = b"a" * 30 + few
    assert decode("x", 1, data) == data.decode("utf-8", "ignore")


def test_bytes_that_are_left_out_are_told_once_a_file(caplog):
    for line in (1, 9):
        decode(f"{__file__}.txt", line, b"a" * 300 + b"\xff\xfe")
    (said,) = caplog.messages
    assert said.startswith(f"{__file__}.txt: 2 bytes from line 1 on are not UTF-8")


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
    monkeypatch.setattr(unpacking, "MOST_LINE_BYTES", 5000)
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
    monkeypatch.setattr(unpacking, "_SMALL_BYTES", 4 << 20)
    path = tmp_path / f"bomb{ending}"
    path.write_bytes(PACKERS[ending](b"a b c\n" * ((32 << 20) // 6)))
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
