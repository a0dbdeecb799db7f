"""A file of vectors that grows, and goes on after a kill."""

import errno
import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.embed import check_origin, growing_vectors, origin_of

VECTORS = np.arange(21, dtype="float32").reshape(7, 3)
TEXTS = [f"text {number}" for number in range(7)]
WHAT = {"model": 1}


def write(output, stop_after=None):
    """Writes blocks of two; a kill is what leaves the block without `finish`."""
    with growing_vectors(output, 3, 2, WHAT) as growing:
        start = growing.rows
        for first in range(start, 7, 2)[:stop_after]:
            growing.append(VECTORS[first : first + 2])
        if stop_after is None:
            growing.finish(TEXTS)
    return start


@pytest.mark.parametrize("blocks", [1, 4])
def test_it_goes_on_after_the_whole_blocks(tmp_path, blocks):
    output = tmp_path / "x.npy"
    assert write(output, blocks) == 0
    assert not output.exists()
    assert write(output) == min(2 * blocks, 6)
    np.testing.assert_array_equal(np.load(output), VECTORS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "x.npy.json"]


def test_half_a_block_is_made_again(tmp_path):
    write(tmp_path / "x.npy", 2)
    with (tmp_path / ".x.npy.incomplete" / "vectors").open("ab") as file:
        file.write(b"\1" * 13)
    assert write(tmp_path / "x.npy") == 4
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), VECTORS)


def test_parquet_has_texts_and_vectors(tmp_path):
    write(tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table["text"].to_pylist() == TEXTS
    np.testing.assert_array_equal(np.array(table["embedding"].to_pylist()), VECTORS)


def test_two_processes_do_not_write_one_file(tmp_path):
    with (
        growing_vectors(tmp_path / "x.npy", 3, 2, WHAT),
        pytest.raises(UserError, match="another process is writing it"),
        growing_vectors(tmp_path / "x.npy", 3, 2, WHAT),
    ):
        pass


def test_a_full_disk_is_one_sentence_and_the_whole_blocks_stay(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    write(tmp_path / "x.npy", 2)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"x\.npy: cannot be written \(No space left on device\)"):
        write(tmp_path / "x.npy")
    monkeypatch.undo()
    assert write(tmp_path / "x.npy") in (4, 6)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), VECTORS)


def test_what_stands_beside_an_array_is_replaced_only_if_it_is_of_its_kind(tmp_path):
    output, text = tmp_path / "x.npy", tmp_path / "x.txt"
    text.write_text("a")
    check_origin(output, text)
    for content in ("important", '{"a": 1}'):
        origin_of(output).write_text(content)
        with pytest.raises(UserError, match=r"x\.npy\.json: would be replaced"):
            check_origin(output, text)
        with pytest.raises(UserError, match=r"x\.npy\.json: is input"):
            check_origin(output, origin_of(output))
    origin_of(output).write_text('{"input_sha256": "0"}')
    check_origin(output, text)
    with pytest.raises(UserError, match=r"x\.npy\.json: is input"):
        check_origin(output, origin_of(output))
