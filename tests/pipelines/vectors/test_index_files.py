"""The files of an index: whole blocks, whatever happens."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.vectors.index_files import IndexFiles

BLOCKS = st.lists(
    st.lists(st.tuples(st.integers() | st.text(), st.none() | st.text()), min_size=1, max_size=4),
    max_size=5,
)
ANY = {"vectors", "rows", "ends", "blocks"}


def made(folder, size=3):
    folder.mkdir()
    IndexFiles.make(folder)
    return IndexFiles(folder, size)


def added(files, rows):
    ids, texts = zip(*rows, strict=True)
    vectors = np.arange(len(rows) * 3, dtype="float32").reshape(-1, 3) + len(files.vectors)
    files.append(vectors, ids, texts)
    return vectors


def stopped_at(files, place, cut, rows):
    """Adds a block, and is killed in front of a flush, when the last file has its first bytes."""
    flushes = []

    def flush(file):
        flushes.append(file)
        if len(flushes) > place:
            file.truncate(file.tell() - cut)
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr("keras_bert_impl.files.flush", flush)
        added(files, rows)


def as_kept(text):
    return text if text is None else text.encode("utf-8", "replace").decode()


@settings(max_examples=20, deadline=None)
@given(blocks=BLOCKS, place=st.integers(0, 3), cut=st.integers(1, 16))
def test_rows_are_what_was_added_whatever_a_killed_process_left(
    tmp_path_factory, blocks, place, cut
):
    folder = tmp_path_factory.mktemp("index") / "index"
    files, vectors = made(folder), [np.empty((0, 3), "float32")]
    for block in blocks:
        vectors.append(added(files, block))
        stopped_at(files, place, cut, [(1, "a longer text than that"), (2, "b")])
        files = IndexFiles(folder, 3)
    np.testing.assert_array_equal(files.vectors, np.concatenate(vectors))
    expected = [(as_kept(i) if isinstance(i, str) else i, as_kept(t)) for b in blocks for i, t in b]
    assert [files.row(number) for number in range(len(expected))] == expected
    files.check()


def test_all_rows_can_be_read_at_any_moment_of_adding(tmp_path, monkeypatch):
    files, mapped, counts = made(tmp_path / "index"), IndexFiles._mapped, []

    def watched(self, name, sizes):
        counts.append(len([files.row(number) for number in range(len(files.vectors))]))
        return mapped(self, name, sizes)

    added(files, [(1, "a")])
    monkeypatch.setattr(IndexFiles, "_mapped", watched)
    added(files, [(2, "b")])
    assert set(counts) == {1}
    assert files.row(1) == (2, "b")


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
from keras_bert_impl import files as whole
from pipelines.vectors import index_files
from pipelines.vectors.index_files import IndexFiles

os.fsync = lambda _: None  # a kill takes nothing from what was written
folder, places = Path(sys.argv[1]), {index_files.__file__, whole.__file__}

def block(files):
    rows = len(files.vectors)
    files.append(np.full([2, 4], rows, np.float32), None, [f"text {rows}"] * 2)

def child(deadline, told):
    files, left = IndexFiles(folder, 4), [deadline]
    def trace(frame, event, argument):
        if frame.f_code.co_filename not in places:
            return None
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)
    block(files)
    sys.settrace(None)
    os.write(told, str(len(files.vectors)).encode())
    os._exit(0)

deadline, done, found = 0, False, []
while not done:
    deadline += 5
    before = len(IndexFiles(folder, 4).vectors)
    read, told = os.pipe()
    if not os.fork():
        child(deadline, told)
    os.close(told)
    os.wait()
    reported = os.read(read, 99)
    os.close(read)
    files, done = IndexFiles(folder, 4), bool(reported)
    files.check()
    found.append([before, len(files.vectors), int(reported or 0)])
    if deadline % 35 == 1:
        block(files)
rows = [files.row(n) for n in range(len(files.vectors))]
numbers = files.vectors[:, 0].tolist()
print(json.dumps([found, rows, numbers]))
"""


def test_a_process_that_is_killed_at_many_lines_leaves_whole_blocks(tmp_path):
    made(tmp_path / "index", 4)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "index")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    result = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    found, rows, numbers = json.loads(result.stdout)
    assert len(found) > 20
    assert {after - before for before, after, _ in found} == {0, 2}
    before, after, reported = found[-1]
    assert reported == after == before + 2
    assert rows == [[n + 1, f"text {n // 2 * 2}"] for n in range(len(rows))]
    assert numbers == [n // 2 * 2 for n in range(len(rows))]


@pytest.mark.parametrize("name", sorted(ANY - {"blocks"}))
def test_a_file_that_is_cut_off_or_altered_is_one_sentence(tmp_path, name):
    files = made(tmp_path / "index")
    added(files, [(1, "a"), (2, "b")])
    path = tmp_path / "index" / name
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(UserError, match=f"{name}: is cut off; remove the folder"):
        IndexFiles(tmp_path / "index", 3)
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(UserError, match=f"{name}: is damaged; remove the folder"):
        IndexFiles(tmp_path / "index", 3).check()
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: no such file"):
        IndexFiles(tmp_path / "index", 3)


def test_blocks_that_are_cut_off_are_one_sentence_and_take_nothing_with_them(tmp_path):
    files = made(tmp_path / "index")
    for number in range(3):
        added(files, [(number, "a")])
    path = tmp_path / "index" / "blocks"
    content = path.read_bytes()
    for left in range(len(content)):
        path.write_bytes(content[:left])
        if left == len(content) - 1:  # as when a process is killed in front of that byte
            assert len(IndexFiles(tmp_path / "index", 3).vectors) == 3
        else:
            with pytest.raises(UserError, match="blocks: is cut off, as vectors has more rows"):
                files.append(np.zeros([1, 3], "float32"), None, ["b"])
    path.write_bytes(content[:-1])
    added(files, [(3, "a")])
    assert len(files.vectors) == 4
    files.check()
    path.write_bytes(content + b"x" * 5000)
    with pytest.raises(UserError, match="blocks: has no end of a line"):
        IndexFiles(tmp_path / "index", 3)


def test_a_row_without_a_line_of_its_own_or_a_block_of_other_values_is_one_sentence(tmp_path):
    files = made(tmp_path / "index")
    added(files, [(1, "a"), (2, "b")])
    for name, content in (("rows", b"[1] [2]"), ("rows", b"{}" * 9), ("ends", b"\xff" * 16)):
        path = tmp_path / "index" / name
        before = path.read_bytes()
        path.write_bytes(content.ljust(len(before)))
        with pytest.raises(UserError, match="cannot be read as the texts of an index"):
            IndexFiles(tmp_path / "index", 3).row(0)
        path.write_bytes(before)
    for line in (b"{}", b'{"rows": -1, "bytes": 1, "crc32": []}', b"[" * 9999, b"\xff"):
        (tmp_path / "index" / "blocks").write_bytes(line + b"\n")
        with pytest.raises(UserError, match=r"blocks: .*remove the folder"):
            IndexFiles(tmp_path / "index", 3)


def test_a_block_is_not_added_through_a_link(tmp_path):
    files = made(tmp_path / "index")
    (tmp_path / "index" / "rows").rename(tmp_path / "elsewhere")
    (tmp_path / "index" / "rows").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="rows: is a link"):
        added(files, [(1, "a")])
