from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import tensorflow as tf

from pipelines.records.names import index_path
from pipelines.records.serialise import masked_crcs
from pipelines.records.shard_writer import write_shard

RECORDS = [b"one", b"", b"three" * 50, b"four"]


def frame_records(records):
    """Records as they stand in a TFRecord file: length, its checksum, record, its checksum."""
    lengths = [len(record).to_bytes(8, "little") for record in records]
    frames = [
        b"".join((length, masked_crcs([length]).tobytes(), record, masked_crcs([record]).tobytes()))
        for length, record in zip(lengths, records, strict=True)
    ]
    return np.frombuffer(b"".join(frames), np.uint8), np.array([len(frame) for frame in frames])


def read_by_tensorflow(*paths: str | Path) -> list[bytes]:
    """TensorFlow checks both checksums of each record."""
    return [record.numpy() for record in tf.data.TFRecordDataset([str(path) for path in paths])]


def test_tensorflow_reads_what_was_written(tmp_path):
    path = tmp_path / "x.tfrecord"
    write_shard(str(path), [frame_records(RECORDS[:1]), frame_records(RECORDS[1:])], {})
    assert read_by_tensorflow(path) == RECORDS


def test_the_entry_tells_size_and_checksum_of_the_file(tmp_path):
    path = tmp_path / "x.tfrecord"
    entry = write_shard(str(path), [frame_records(RECORDS)], {"examples": 4})
    data = path.read_bytes()
    assert (entry.file, entry.bytes, entry.counts) == ("x.tfrecord", len(data), {"examples": 4})
    assert int(entry.crc32c, 16) == google_crc32c.value(data)


def test_the_index_holds_the_bytes_of_each_frame(tmp_path):
    path = tmp_path / "x.tfrecord"
    write_shard(str(path), [frame_records(RECORDS[:3]), frame_records(RECORDS[3:])], {})
    sizes = np.fromfile(index_path(path), "<u4")
    assert sizes.tolist() == [len(record) + 16 for record in RECORDS]


def test_an_error_in_a_block_leaves_no_file(tmp_path):
    def blocks():
        yield frame_records(RECORDS)
        raise ValueError("no such document")

    with pytest.raises(ValueError, match="no such document"):
        write_shard(str(tmp_path / "x"), blocks(), {})
    assert list(tmp_path.iterdir()) == []
