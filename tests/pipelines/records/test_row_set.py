import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.task import ROWS_VERSION
from pipelines.records import row_set
from pipelines.records.row_set import RowSet, make_rows
from pipelines.records.rows import Rows
from tests.support.programs import Program

SOURCE = {"file": "train.tsv", "sha256": "12ab"}


def block(lengths, examples=None, start=0):
    lengths = np.array(lengths)
    ids = np.arange(start, start + int(lengths.sum()), dtype=np.int32)
    examples = np.arange(len(lengths)) if examples is None else np.array(examples)
    values = {"label_ids": lengths.astype(np.int32) % 2}
    return Rows(examples, lengths, {"input_ids": ids}, values)


BLOCKS = [block([3, 1, 2], [0, 0, 1]), block([4, 1], start=50)]


def alter(path, byte=20):
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)


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


def test_rows_of_another_source_stand_beside_them(tmp_path):
    first = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    second = make_rows(tmp_path / "rows", {**SOURCE, "sha256": "other"}, [block([9, 9])])
    assert second.lengths.tolist() == [9, 9]
    assert second.description.made_from == {**SOURCE, "sha256": "other"}
    assert make_rows(tmp_path / "rows", SOURCE, refuse()).folder == first.folder


@pytest.mark.parametrize(
    "change",
    ["truncated", "altered", "index", "altered index", "endless", "shard's index", "[]", "{", "3"],
)
def test_what_is_damaged_is_made_again(tmp_path, change, caplog):
    folder = make_rows(tmp_path / "rows", SOURCE, BLOCKS).folder
    if change == "truncated":
        os.truncate(folder / "rows-00000.tfrecord", 20)
    elif change == "altered":
        alter(folder / "rows-00000.tfrecord")
    elif change == "index":
        (folder / "rows.index").unlink()
    elif change == "altered index":
        alter(folder / "rows.index", 4)
    elif change == "endless":
        (folder / "rows.index").unlink()
        (folder / "rows.index").symlink_to("/dev/zero")
    elif change == "shard's index":
        alter(folder / "rows-00000.tfrecord.index", 0)
    else:
        (folder / "rows.json").write_text(change)
    rows = make_rows(tmp_path / "rows", SOURCE, [block([9, 9])])
    assert (rows.folder, rows.lengths.tolist()) == (folder, [9, 9])
    assert rows.read(np.array([1])).lengths.tolist() == [9]
    assert "these rows were damaged" in caplog.text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rows.json", "other rows than these"),
        ("rows.index", r"rows\.index: is missing"),
        ("rows-00000.tfrecord", r"rows-00000\.tfrecord: is missing or not of \d+ bytes"),
    ],
)
def test_rows_that_are_not_those_described_are_not_opened(tmp_path, name, message):
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    (rows.folder / name).unlink()
    with pytest.raises(UserError, match=message):
        RowSet(rows.folder, rows.description)


def test_what_killed_processes_of_other_machines_left_is_removed(tmp_path):
    left = tmp_path / ".rows-dev-12ab.elsewhere.7.incomplete"
    left.mkdir()
    (left / "rows-00000.tfrecord").write_bytes(b"half")
    make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    assert not left.exists()


PROGRAM = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from pipelines.records.row_set import make_rows
from tests.pipelines.records.test_row_set import BLOCKS
def blocks():
    print("makes", flush=True)
    time.sleep(1.0)
    yield from BLOCKS
Path(sys.argv[1], "ready-" + sys.argv[2]).touch()
while len(list(Path(sys.argv[1]).glob("ready-*"))) < 2:
    time.sleep(0.01)
rows = make_rows(Path(sys.argv[1], "rows"), {{"file": sys.argv[3]}}, blocks())
print(rows.read(rows.examples[:2].astype("int64")).lengths.tolist(), rows.folder.name)
"""


@pytest.mark.parametrize("sources", [["a", "a"], ["a", "b"]])
def test_two_processes_share_a_folder(tmp_path, sources):
    program = PROGRAM.format(root=str(Path.cwd()))
    processes = [
        Program(["-c", program, tmp_path, number, source]) for number, source in enumerate(sources)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    # Each one reads its own rows; the same rows are made once.
    assert sum("makes" in output for output in outputs) == len(set(sources))
    assert all("[3, 3] rows-" in output for output in outputs)
    assert len({output.split()[-1] for output in outputs}) == len(set(sources))


def test_an_altered_record_is_refused(tmp_path):
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    alter(rows.folder / "rows-00000.tfrecord")
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
    assert [path.name for path in tmp_path.iterdir()] == [".rows.lock"]


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
    assert not list(tmp_path.glob("rows*"))
    rows = make_rows(tmp_path / "rows", SOURCE, BLOCKS)
    assert len(rows) == 5
    assert {path.name for path in tmp_path.iterdir()} == {".rows.lock", rows.folder.name}


# What each version wrote for the same rows. Bytes that changed need another version and a line.
WRITTEN = {
    (3, 1): {
        "plain": "d29a0229d39aa60baa4c56a5505d1d5bfe3a632d23b8877cb923a38aba277488",
        "choices": "f1956afd88f48377f045677b7813265851ebc474826232b5a58310da9b4a8714",
    },
}
CHOICES = Rows(
    np.array([0, 1]),
    np.array([2, 1]),
    {"input_ids": np.array([2, 300, 2, 0, 70_000, 3], np.int32)},
    {"weights": np.array([[0.5, -1.0], [np.pi, 0.0]], np.float32)},
    choices=2,
)


@pytest.mark.parametrize(("name", "blocks"), [("plain", BLOCKS), ("choices", [CHOICES])])
def test_another_format_has_another_version(tmp_path, name, blocks):
    folder = make_rows(tmp_path / "rows", SOURCE, blocks).folder
    files = sorted(path for path in folder.iterdir() if path.name != row_set.DESCRIPTION)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    assert digest == WRITTEN.get((row_set.FORMAT, ROWS_VERSION), {}).get(name), (
        "rows are written as other bytes than before: rows on disk would be read wrongly, or used "
        "again although they changed. Raise FORMAT in row_set.py where their form changed, or "
        "ROWS_VERSION in pipelines/fine_tuning/task.py where their content did, and record the "
        "hash here."
    )
