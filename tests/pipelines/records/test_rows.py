"""Records of rows, held to what TensorFlow writes and reads."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.rows import Rows, features_of, rows_parser, serialise_rows, varints


def some_rows(choices=None):
    lengths = np.array([3, 1, 4])
    count = int(lengths.sum()) * (choices or 1)
    return Rows(
        examples=np.array([0, 0, 1]),
        lengths=lengths,
        tokens={
            "input_ids": np.arange(100, 100 + count, dtype=np.int32) * 3,
            "input_mask": np.ones(count, np.int32),
        },
        values={
            "label_ids": np.array([1, 0, 200], np.int32),
            "numbers": np.array([[0.5, -1.0], [2.0, 3.0], [4.0, 5.0]], np.float32),
        },
        choices=choices,
    )


def frames_to_records(frames, tmp_path):
    """What TensorFlow, which checks both checksums, reads of the frames."""
    data, sizes = frames
    (tmp_path / "x").write_bytes(data.tobytes())
    assert sizes.sum() == len(data)
    return [record.numpy() for record in tf.data.TFRecordDataset(str(tmp_path / "x"))]


@pytest.mark.parametrize("choices", [None, 2])
def test_records_are_examples_as_tensorflow_reads_them(tmp_path, choices):
    rows = some_rows(choices)
    records = frames_to_records(serialise_rows(rows), tmp_path)
    offsets = rows.offsets()
    for number, record in enumerate(records):
        features = tf.train.Example.FromString(record).features.feature
        flat = rows.tokens["input_ids"][offsets[number] : offsets[number + 1]]
        assert list(features["input_ids"].int64_list.value) == flat.tolist()
        assert list(features["label_ids"].int64_list.value) == [rows.values["label_ids"][number]]
        assert list(features["numbers"].float_list.value) == rows.values["numbers"][number].tolist()


@pytest.mark.parametrize("choices", [None, 2])
def test_what_is_parsed_is_what_was_written(tmp_path, choices):
    rows = some_rows(choices)
    records = frames_to_records(serialise_rows(rows), tmp_path)
    lengths, tokens, values = rows_parser(features_of(rows), choices)(records)
    np.testing.assert_array_equal(lengths, rows.lengths)
    for name, array in {**rows.tokens, **rows.values}.items():
        read = {**tokens, **values}[name]
        np.testing.assert_array_equal(read, array)
        assert read.dtype == array.dtype


@given(st.lists(st.integers(0, 2**31 - 1), max_size=30))
def test_varints_are_those_of_protocol_buffers(numbers):
    data, ends = varints(np.array(numbers, np.int32))
    list_of = tf.train.Int64List(value=numbers).SerializeToString()
    assert list_of.endswith(data)
    assert len(ends) == len(numbers)


@pytest.mark.parametrize("number", [-1, -100, 2**31, 2**40])
def test_numbers_that_records_cannot_hold_are_refused_by_name(number):
    values = {"label_ids": np.array([0, number])}
    rows = Rows(np.array([0, 1]), np.array([1, 1]), {"input_ids": np.array([5, 6])}, values)
    with pytest.raises(ValueError, match=f"feature label_ids: {number} is not a number from 0 to"):
        serialise_rows(rows)


def test_rows_are_padded_with_zeros_to_any_length():
    padded = some_rows().padded(5)
    assert padded["input_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    assert padded["input_ids"][1].tolist() == [309, 0, 0, 0, 0]
    assert padded["label_ids"].tolist() == [1, 0, 200]


def test_choices_are_an_axis_of_their_own():
    padded = some_rows(choices=2).padded(4)
    assert padded["input_ids"].shape == (3, 2, 4)
    assert padded["input_ids"][1].tolist() == [[318, 0, 0, 0], [321, 0, 0, 0]]


def test_a_part_of_the_rows_counts_its_examples_from_zero():
    part = some_rows().of(2, 3, first_example=1)
    assert (part.examples.tolist(), part.lengths.tolist()) == ([0], [4])
    assert part.tokens["input_ids"].tolist() == [312, 315, 318, 321]
    assert part.values["label_ids"].tolist() == [200]
