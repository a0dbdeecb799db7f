import bz2
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.corpora.unpacking import read_line_blocks, read_lines

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


def test_lines_come_without_their_ends(tmp_path):
    (tmp_path / "text").write_bytes(b"a\r\nb\n\nc")
    assert list(read_lines(str(tmp_path / "text"))) == [b"a", b"b", b"", b"c"]


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize("damage", ["cut", "no archive"])
def test_a_damaged_archive_is_named(tmp_path, ending, damage):
    packed = PACKERS[ending](TEXT)
    path = tmp_path / f"text{ending}"
    path.write_bytes(packed[: len(packed) // 2] if damage == "cut" else b"no archive at all")
    with pytest.raises(
        UserError, match=rf"text{ending}: cannot be unpacked behind line \d+ \(.+\)"
    ):
        list(read_lines(str(path)))
