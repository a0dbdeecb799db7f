import errno

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.inputs import row_outputs
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.row_set import make_rows
from pipelines.records.rows import Rows

LENGTHS = np.array([2, 3, 1])


@pytest.fixture
def rows(tmp_path):
    tokens = {"input_ids": np.arange(6, dtype=np.int32)}
    return make_rows(tmp_path / "rows", {}, [Rows(np.arange(3), LENGTHS, tokens)])


@pytest.fixture
def outputs(rows, tmp_path):
    """Put in batches of other orders and lengths."""
    outputs = RowOutputs(tmp_path / "outputs", rows, ["start_logits"])
    starts = np.array([[20, 21, -1, -1], [0, 1, -1, -1]], np.float32)
    outputs.add(np.array([2, 0]), {"logits": np.array([[2.0], [0.0]]), "start_logits": starts})
    starts = np.array([[10, 11, 12]], np.float32)
    outputs.add(np.array([1]), {"logits": np.array([[1.0]]), "start_logits": starts})
    return outputs


def test_outputs_are_read_by_row(outputs):
    assert outputs.read(0, 3)["logits"].tolist() == [[0], [1], [2]]
    assert outputs.read(1, 2)["logits"].tolist() == [[1]]


def test_outputs_of_tokens_are_kept_for_real_tokens_only(outputs):
    assert outputs.read(0, 3)["start_logits"].tolist() == [0, 1, 10, 11, 12, 20]
    assert outputs.read(1, 3)["start_logits"].tolist() == [10, 11, 12, 20]


def test_a_loss_gets_outputs_of_tokens_padded(outputs, rows):
    padded = outputs.padded(0, rows.read(np.arange(3)))["start_logits"]
    assert padded.tolist() == [[0, 1, 0], [10, 11, 12], [20, 0, 0]]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_an_output_that_is_no_number_is_refused_but_not_padding(outputs, number):
    padded = np.array([[10, 11, 12, number]], np.float32)
    outputs.add(np.array([1]), {"start_logits": padded})
    for name, values in (("start_logits", [[10, number, 12]]), ("logits", [[number]])):
        with pytest.raises(UserError, match=f"The model's {name} are NaN or infinite"):
            outputs.add(np.array([1]), {name: np.array(values, np.float32)})


def test_the_room_for_outputs_is_taken_before_they_are_written(rows, tmp_path):
    """A page of a mapped file that has no room kills the process."""
    outputs = RowOutputs(tmp_path / "outputs", rows)
    outputs.add(np.array([0]), {"logits": np.ones([1, 20_000], np.float32)})
    taken = (tmp_path / "outputs" / "logits.npy").stat()
    assert taken.st_blocks * 512 >= taken.st_size
    assert outputs.read(0, 3)["logits"].sum(axis=1).tolist() == [20_000, 0, 0]


def test_a_full_disk_is_one_sentence(rows, tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(row_outputs, "_take_room", full)
    outputs = RowOutputs(tmp_path / "outputs", rows)
    with pytest.raises(UserError, match=r"logits\.npy: cannot be written \(No space left on"):
        outputs.add(np.array([0]), {"logits": np.ones([1, 2], np.float32)})
