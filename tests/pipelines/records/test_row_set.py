import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.records import row_set
from pipelines.records.row_set import make_rows
from pipelines.records.rows import Rows

SOURCE = {"file": "train.tsv", "sha256": "12ab"}


def block(lengths, examples=None, start=0):
    lengths = np.array(lengths)
    ids = np.arange(start, start + int(lengths.sum()), dtype=np.int32)
    examples = np.arange(len(lengths)) if examples is None else np.array(examples)
    values = {"label_ids": lengths.astype(np.int32) % 2}
    return Rows(examples, lengths, {"input_ids": ids}, values)


BLOCKS = [block([3, 1, 2], [0, 0, 1]), block([4, 1], start=50)]


def refuse():
    raise AssertionError("the rows were there already")
    yield


def test_rows_are_read_in_any_order(tmp_path):
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    read = rows.read(np.array([3, 0]))
    assert read.lengths.tolist() == [4, 3]
    assert read.tokens["input_ids"].tolist() == [50, 51, 52, 53, 0, 1, 2]
    assert read.values["label_ids"].tolist() == [0, 1]


def test_examples_are_counted_over_all_blocks(tmp_path):
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    assert rows.examples.tolist() == [0, 0, 1, 2, 3]
    assert (len(rows), rows.num_examples) == (5, 4)
    assert rows.description.counts == {"examples": 4, "rows": 5, "tokens": 11, "longest": 4}


def test_what_is_there_is_used_again(tmp_path):
    first = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    again = make_rows(tmp_path / "rows", SOURCE, refuse())
    assert again.identity == first.identity
    assert again.lengths.tolist() == [3, 1, 2, 4, 1]


@pytest.mark.parametrize("change", ["source", "truncated", "index", "description"])
def test_what_has_changed_is_made_again(tmp_path, change):
    folder = tmp_path / "rows"
    make_rows(folder, SOURCE, BLOCKS)
    if change == "truncated":
        os.truncate(folder / "rows-00000.tfrecord", 20)
    elif change == "index":
        (folder / "rows.index").unlink()
    elif change == "description":
        (folder / "rows.json").write_text("{")
    source = {**SOURCE, "sha256": "other"} if change == "source" else SOURCE
    rows = make_rows(folder, source, [block([9, 9])])
    assert rows.lengths.tolist() == [9, 9]
    assert rows.description.made_from == source


def test_an_altered_record_is_refused(tmp_path):
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    path = tmp_path / "rows" / "rows-00000.tfrecord"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="record 0 was altered"):
        rows.read(np.array([0]))


def test_large_sets_have_several_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(row_set, "_SHARD_BYTES", 100)
    blocks = [block([3, 2], start=10 * n) for n in range(4)]
    rows = make_rows(tmp_path / "rows", SOURCE, blocks)
    assert [shard.counts["rows"] for shard in rows.description.shards] == [2, 2, 2, 2]
    assert rows.read(np.array([7, 2])).tokens["input_ids"].tolist() == [33, 34, 10, 11, 12]


def test_all_rows_of_an_example_are_in_one_block(tmp_path):
    rows = make_rows(tmp_path / "rows", SOURCE, [block([1] * 7, [0, 1, 1, 1, 2, 3, 3])])
    found = [(start, part.examples.tolist()) for start, part in rows.blocks(2)]
    assert found == [(0, [0, 1, 1, 1]), (4, [2, 3, 3])]


def test_blocks_with_other_features_are_a_mistake_of_the_task(tmp_path):
    other = Rows(np.array([0]), np.array([1]), {"input_ids": np.array([1], np.int32)})
    with pytest.raises(ValueError, match="the blocks before it"):
        make_rows(tmp_path / "rows", SOURCE, [BLOCKS[0], other])
    assert not (tmp_path / "rows").exists()


def test_a_kill_leaves_nothing_that_looks_whole(tmp_path):
    program = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path.cwd())!r})
        from pathlib import Path
        from pipelines.records.row_set import make_rows
        from tests.pipelines.records.test_row_set import BLOCKS, SOURCE
        def blocks():
            yield BLOCKS[0]
            os.kill(os.getpid(), signal.SIGKILL)
        make_rows(Path({str(tmp_path / "rows")!r}), SOURCE, blocks())
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "rows").exists()
    assert len(make_rows(tmp_path / "rows", SOURCE, BLOCKS)) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
