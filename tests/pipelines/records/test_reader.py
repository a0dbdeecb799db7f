import resource
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.records.reader import RecordReader, load_sizes

RECORDS = [b"one", b"", b"three" * 50, b"four"]


def _write(path: Path, records: list[bytes]) -> str:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def test_any_record_by_its_number(tmp_path):
    shards = [_write(tmp_path / "a", RECORDS[:1]), _write(tmp_path / "b", RECORDS[1:])]
    reader = RecordReader(shards)
    assert len(reader) == 4
    assert reader.read(np.array([3, 0, 2, 1, 0])) == [
        b"four", b"one", b"three" * 50, b"", b"one",
    ]  # fmt: skip


def test_an_empty_shard_is_passed_over(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    reader = RecordReader([str(tmp_path / "empty"), _write(tmp_path / "a", RECORDS)])
    assert reader.read(np.array([0])) == [b"one"]
    assert [reader.first_record(shard) for shard in (0, 1)] == [None, 0]


def test_a_truncated_shard_is_named(tmp_path):
    path = Path(_write(tmp_path / "a", RECORDS))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"a: is truncated or no TFRecord file \(record [23]"):
        RecordReader([str(path)])


def test_an_altered_record_is_named_when_it_is_read(tmp_path):
    path = Path(_write(tmp_path / "a", RECORDS))
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    reader = RecordReader([str(path)])
    assert reader.read(np.array([0])) == [b"one"]
    with pytest.raises(UserError, match="a: record 2 was altered"):
        reader.read(np.array([0, 2]))


def test_more_shards_than_the_system_lets_open_at_first(tmp_path):
    shards = [_write(tmp_path / f"{number:03}", [b"x"]) for number in range(300)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert RecordReader(shards).read(np.array([299])) == [b"x"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_record_of_gigabytes_is_refused_unread(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.write((5 << 30).to_bytes(8, "little"))
        file.truncate(6 << 30)
    with pytest.raises(UserError, match="record 0 would have 5,368,709,136 bytes"):
        load_sizes(tmp_path / "sparse")


def test_records_beyond_four_gibibytes_of_a_shard_are_read(tmp_path):
    frame = Path(_write(tmp_path / "a", [b"the last one"])).read_bytes()
    sizes = np.array([4_000_000_000, 400_000_000, len(frame)], "<u4")
    with (tmp_path / "sparse").open("wb") as file:
        file.seek(4_400_000_000)
        file.write(frame)
    sizes.tofile(tmp_path / "sparse.index")
    try:
        assert RecordReader([tmp_path / "sparse"]).read(np.array([2])) == [b"the last one"]
    finally:
        (tmp_path / "sparse").unlink()
