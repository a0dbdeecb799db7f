"""Rows of a split in memory, and the outputs for them."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.fine_tuning import row_set
from pipelines.fine_tuning.row_set import RowOutputs, RowSet
from pipelines.records.rows import Rows


def block(lengths, examples=None, start=0, choices=None):
    lengths = np.array(lengths)
    ids = np.arange(start, start + int(lengths.sum()) * (choices or 1), dtype=np.int32)
    examples = np.arange(len(lengths)) if examples is None else np.array(examples)
    values = {
        "label_ids": lengths.astype(np.int32) % 2,
        "numbers": np.stack([lengths * 0.5, -lengths], axis=1).astype(np.float32),
    }
    return Rows(examples, lengths, {"input_ids": ids}, values, choices)


BLOCKS = [block([3, 1, 2], [0, 0, 1]), block([4, 1], start=70_000)]  # the second is wider


def test_rows_are_read_in_any_order():
    read = RowSet(BLOCKS).read(np.array([3, 0]))
    assert read.lengths.tolist() == [4, 3]
    assert read.tokens["input_ids"].tolist() == [70_000, 70_001, 70_002, 70_003, 0, 1, 2]
    assert read.values["label_ids"].tolist() == [0, 1]
    assert read.values["numbers"].tolist() == [[2.0, -4.0], [1.5, -3.0]]
    arrays = (*read.tokens.values(), *read.values.values())
    assert [array.dtype for array in arrays] == [np.int32, np.int32, np.float32]


def test_the_identity_is_that_of_the_content_however_it_came():
    whole = RowSet([block([3, 1, 2, 2], start=5)])
    parts = RowSet([block([3, 1], start=5), block([2, 2], start=9)])
    assert whole.identity == parts.identity != RowSet([block([3, 1, 2, 2], start=6)]).identity


def test_all_rows_of_an_example_are_in_one_block():
    rows = RowSet([block([1] * 7, [0, 1, 1, 1, 2, 3, 3])])
    found = [(start, part.examples.tolist()) for start, part in rows.blocks(2)]
    assert found == [(0, [0, 1, 1, 1]), (4, [2, 3, 3])]


def test_a_number_that_was_always_the_same_may_change():
    blocks = [Rows(np.array([0]), np.array([2]), {"x": np.array(x)}) for x in ([1, 1], [1, 300])]
    assert RowSet([*blocks, blocks[0]]).read(np.arange(3)).tokens["x"].tolist() == [
        *(1, 1, 1, 300, 1, 1)
    ]
    assert RowSet(blocks).identity == RowSet([blocks[0], blocks[1]]).identity


def test_rows_that_need_too_much_memory_are_refused(monkeypatch):
    monkeypatch.setattr(row_set, "_memory", lambda: 20)
    with pytest.raises(UserError, match=r"train\.tsv: the rows of its first 2 examples take 0\.0"):
        RowSet(BLOCKS, "train.tsv")


@pytest.fixture
def rows():
    return RowSet([block([2, 3, 1])])


@pytest.fixture
def outputs(rows):
    """Put in batches of other orders and lengths."""
    outputs = RowOutputs(rows, ["start_logits"])
    starts = np.array([[20, 21, -1, -1], [0, 1, -1, -1]], np.float32)
    outputs.add(np.array([2, 0]), {"logits": np.array([[2.0], [0.0]]), "start_logits": starts})
    starts = np.array([[10, 11, 12]], np.float32)
    outputs.add(np.array([1]), {"logits": np.array([[1.0]]), "start_logits": starts})
    return outputs


def test_a_loss_gets_outputs_of_tokens_padded(outputs, rows):
    padded = outputs.padded(0, rows.read(np.arange(3)))["start_logits"]
    assert padded.tolist() == [[0, 1, 0], [10, 11, 12], [20, 0, 0]]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_an_output_that_is_no_number_is_refused_but_not_padding(outputs, number):
    padded = np.array([[10, 11, 12, number]], np.float32)
    outputs.add(np.array([1]), {"start_logits": padded})
    for name, values in (("start_logits", [[10, number, 12]]), ("logits", [[number]])):
        with pytest.raises(UserError, match=f"its {name} are NaN or infinite"):
            outputs.add(np.array([1]), {name: np.array(values, np.float32)})
