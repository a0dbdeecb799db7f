"""Batches of rows: functions of (seed, step), each row once an epoch, hardly longer than needed."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.inputs import row_batches
from pipelines.inputs.row_batches import (
    BatchLengths,
    LengthOrder,
    RowBatches,
    RowEvaluation,
    padded_length,
)
from pipelines.records.row_set import make_rows
from pipelines.records.rows import Rows

LENGTHS = [3, 40, 7, 1, 22, 9, 31, 5, 12, 2, 17]
FREE, FIXED = BatchLengths(64), BatchLengths(64, fixed=True)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Row n has the tokens 100 n, 100 n + 1, ... and the label n."""
    lengths = np.array(LENGTHS)
    ids = np.concatenate([100 * n + np.arange(length) for n, length in enumerate(LENGTHS)])
    tokens = {"input_ids": ids.astype(np.int32), "input_mask": np.ones(len(ids), np.int32)}
    numbers = np.arange(len(lengths))
    labels = {"label_ids": numbers.astype(np.int32)}
    block = Rows(numbers // 2, lengths, tokens, labels)
    return make_rows(tmp_path_factory.mktemp("rows") / "train", {}, [block])


def labels_of(batches, count):
    return [batch["label_ids"].tolist() for batch in itertools.islice(batches, count)]


@pytest.mark.parametrize("by_length", [False, True])
def test_a_batch_is_a_function_of_the_step(rows, by_length):
    batches = RowBatches(rows, 4, 7, FREE, by_length=by_length)
    whole = labels_of(batches.batches_from(0), 9)
    again = RowBatches(rows, 4, 7, FREE, by_length=by_length)
    for step in (5, 0, 8):
        assert labels_of(again.batches_from(step), 1) == [whole[step]]
    other = RowBatches(rows, 4, 8, FREE, by_length=by_length)
    assert labels_of(other.batches_from(0), 9) != whole


@pytest.mark.parametrize("by_length", [False, True])
def test_every_row_is_seen_equally_often(rows, by_length):
    batches = RowBatches(rows, 4, 7, FREE, by_length=by_length)
    seen = collections.Counter(itertools.chain(*labels_of(batches.batches_from(0), 22)))
    assert seen == dict.fromkeys(range(11), 8)


def test_a_batch_has_its_rows_whole_and_no_longer_than_an_eighth_too_much(rows):
    batches = RowBatches(rows, 3, 1, FREE)
    for batch in itertools.islice(batches.batches_from(0), 11):
        longest = 0
        for row, label in enumerate(batch["label_ids"].tolist()):
            length = LENGTHS[label]
            expected = 100 * label + np.arange(length)
            assert batch["input_ids"][row, :length].tolist() == expected.tolist()
            assert batch["input_mask"][row].sum() == length
            assert not batch["input_ids"][row, length:].any()
            longest = max(longest, length)
        assert batch["input_ids"].shape[1] == -(-longest // 8) * 8


def test_fixed_lengths_are_all_the_same(rows):
    batches = RowBatches(rows, 3, 1, FIXED, by_length=True)
    shapes = {batch["input_ids"].shape for batch in itertools.islice(batches.batches_from(0), 9)}
    assert shapes == {(3, 64)}


def test_a_steps_examples_are_named(rows):
    batches = RowBatches(rows, 4, 7, FREE)
    examples = sorted({number // 2 for number in batches.rows_of(2).tolist()})
    named = ", ".join(map(str, examples))
    assert batches.where(2) == f"examples {named} of the training split"


@settings(max_examples=40)
@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 99))
def test_windows_of_like_lengths_hold_each_row_once_an_epoch(count, batch_size, seed):
    lengths = np.random.default_rng(seed).integers(1, 100, count)
    order = LengthOrder(lengths, batch_size, seed)
    steps = row_batches.WINDOW_BATCHES * 3 * count // batch_size + 1
    window = min(row_batches.WINDOW_BATCHES, max(1, count // batch_size))
    steps = -(-steps // window) * window  # whole windows
    seen = collections.Counter(
        itertools.chain(*(order.rows_of(step).tolist() for step in range(steps)))
    )
    full, more = divmod(steps * batch_size, count)
    assert set(seen.values()) <= {full, full + (more > 0)}


def test_rows_of_like_lengths_leave_little_padding(tmp_path):
    lengths = np.random.default_rng(1).integers(2, 128, 4000)
    tokens = {"input_ids": np.ones(int(lengths.sum()), np.int32)}
    rows = make_rows(tmp_path / "rows", {}, [Rows(np.arange(4000), lengths, tokens)])
    share = {
        name: RowBatches(rows, 32, 1, kind, by_length=by_length).padding_share()
        for name, kind, by_length in [
            ("whole", BatchLengths(128, fixed=True), False),
            ("trimmed", BatchLengths(128), False),
            ("sorted", BatchLengths(128), True),
        ]
    }
    assert share["whole"] == pytest.approx(1 - lengths.mean() / 128, abs=0.01)
    assert share["sorted"] < 0.16 < 0.4 < share["trimmed"] <= share["whole"]


def test_neighbouring_batches_differ_in_length(tmp_path):
    """The sorted batches of a window are shuffled."""
    lengths = np.arange(1, 401)
    order = LengthOrder(lengths, 4, seed=3)
    means = [lengths[order.rows_of(step)].mean() for step in range(50)]
    assert abs(np.corrcoef(means, np.arange(50))[0, 1]) < 0.5


@pytest.mark.parametrize("batch_size", [1, 4, 11, 20])
def test_an_evaluation_sees_every_row_once(rows, batch_size):
    source = RowEvaluation(rows, batch_size, FREE)
    seen = []
    for numbers, batch in zip(source.numbers(), source.batches(), strict=True):
        assert batch["input_ids"].shape[0] == batch_size
        real = batch["example_weights"] > 0
        assert batch["label_ids"][real].tolist() == numbers.tolist()
        seen += numbers.tolist()
    assert sorted(seen) == list(range(11))
    assert source.num_batches == -(-11 // batch_size)


def test_an_evaluation_puts_like_lengths_together(rows):
    lengths = [
        LENGTHS[number] for number in np.concatenate(list(RowEvaluation(rows, 4, FREE).numbers()))
    ]
    assert lengths == sorted(LENGTHS)


@pytest.mark.parametrize("kind", [FREE, FIXED])
def test_the_padding_of_an_evaluation_is_that_of_its_batches(rows, kind):
    source = RowEvaluation(rows, 4, kind)
    positions = sum(batch["input_ids"].size for batch in source.batches())
    # The last batch is filled up with a row that does not count.
    assert source.padding_share() == pytest.approx(1 - sum(LENGTHS) / positions)


@given(st.integers(1, 600))
def test_a_length_has_eight_shapes_at_most_none_much_longer_than_the_row(length):
    kept = [padded_length(longest, length) for longest in range(1, length + 1)]
    for longest, positions in enumerate(kept, start=1):
        assert longest <= positions < longest + max(8, length / 8 + 1)
    assert len(set(kept)) <= 8
    assert kept[-1] == length


def test_a_batch_without_a_token_has_positions():
    assert padded_length(0, 128) == 16
