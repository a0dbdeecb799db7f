"""Batches of rows: functions of (seed, step), each row once an epoch, hardly longer than needed."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.config import BertConfig
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from keras_bert_impl.training.objectives import count_examples
from pipelines.fine_tuning import row_batches
from pipelines.fine_tuning.row_batches import (
    BatchLengths,
    LengthOrder,
    LengthRule,
    RowBatches,
    RowEvaluation,
)
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Rows

LENGTHS = [3, 40, 7, 1, 22, 9, 31, 5, 12, 2, 17]


@pytest.fixture(scope="module")
def rows():
    """Row n has the tokens 100 n, 100 n + 1, ... and the label n."""
    lengths = np.array(LENGTHS)
    ids = np.concatenate([100 * n + np.arange(length) for n, length in enumerate(LENGTHS)])
    tokens = {"input_ids": ids.astype(np.int32), "input_mask": np.ones(len(ids), np.int32)}
    numbers = np.arange(len(lengths))
    labels = {"label_ids": numbers.astype(np.int32)}
    block = Rows(numbers // 2, lengths, tokens, labels)
    return RowSet([block])


def longest_of(numbers):
    return max(LENGTHS[number] for number in numbers)


def labels_of(batches, count):
    return [batch["label_ids"].tolist() for batch in itertools.islice(batches, count)]


def test_a_batch_is_a_function_of_the_step(rows):
    batches = RowBatches(rows, 4, 7)
    whole = labels_of(batches.batches_from(0), 9)
    again = RowBatches(rows, 4, 7)
    for step in (5, 0, 8):
        assert labels_of(again.batches_from(step), 1) == [whole[step]]
    other = RowBatches(rows, 4, 8)
    assert labels_of(other.batches_from(0), 9) != whole


def test_each_text_counts_once_in_an_epoch_however_many_rows_it_has_and_wherever_they_are():
    """Long texts are in batches of their own, which must not be made as heavy as any other."""
    counts = np.array([1] * 40 + [10] * 4)
    examples = np.repeat(np.arange(44), counts)
    lengths = np.where(examples < 40, 3, 9)
    weights = (1 / counts[examples]).astype(np.float32)
    tokens = {"input_ids": np.ones(lengths.sum(), np.int32)}
    labels = {"label_ids": examples.astype(np.int32), EXAMPLE_WEIGHTS: weights}
    batches = RowBatches(RowSet([Rows(examples, lengths, tokens, labels)]), 8, 1)
    shares, steps = np.zeros(44), 10  # 80 rows: an epoch
    for batch in itertools.islice(batches.batches_from(0), steps):
        given = batch[EXAMPLE_WEIGHTS] / count_examples(batch) / steps  # as objectives do it
        np.add.at(shares, batch["label_ids"], given)
    np.testing.assert_allclose(shares, 1 / 44, rtol=1e-6)


def test_a_batch_has_its_rows_whole_and_the_length_of_its_longest_where_lengths_are_few(rows):
    batches = RowBatches(rows, 3, 0)
    counted = [longest_of(batches.rows_of(step)) for step in range(4)]  # an epoch's
    for step, batch in enumerate(itertools.islice(batches.batches_from(0), 11)):
        longest = 0
        for row, label in enumerate(batch["label_ids"].tolist()):
            length = LENGTHS[label]
            expected = 100 * label + np.arange(length)
            assert batch["input_ids"][row, :length].tolist() == expected.tolist()
            assert batch["input_mask"][row].sum() == length
            assert not batch["input_ids"][row, length:].any()
            longest = max(longest, length)
        assert batch["input_ids"].shape[1] in {*counted, max(LENGTHS)}
        if step < len(counted):
            assert batch["input_ids"].shape[1] == longest


def test_runs_of_other_seeds_have_the_same_lengths(rows):
    lengths = [RowBatches(rows, 3, seed)._lengths for seed in range(5)]
    assert len(set(lengths)) == 1 < len(lengths[0].allowed)


@settings(max_examples=40)
@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 99))
def test_each_row_is_there_once_an_epoch(count, batch_size, seed):
    lengths = np.random.default_rng(seed).integers(1, 100, count)
    order = LengthOrder(lengths, batch_size, seed)
    seen, step = collections.Counter(dict.fromkeys(range(count), 0)), 0
    for epoch in (1, 2, 3, 4):
        while step < epoch * count // batch_size:
            seen.update(order.rows_of(step).tolist())
            step += 1
        # What is left of an epoch is less than a batch.
        full, more = divmod(step * batch_size, count)
        assert sorted(seen.values()) == [full] * (count - more) + [full + 1] * more


@pytest.mark.parametrize("batch_size", [4, 20])
def test_an_evaluation_sees_every_row_once(rows, batch_size):
    source = RowEvaluation(rows, batch_size)
    seen, count = [], 0
    for numbers, batch in zip(source.numbers(), source.batches(), strict=True):
        assert batch["input_ids"].shape[0] == batch_size
        real = batch["example_weights"] > 0
        assert batch["label_ids"][real].tolist() == numbers.tolist()
        seen += numbers.tolist()
        count += 1
    assert sorted(seen) == list(range(11))
    assert count == -(-11 // batch_size)


def positions(allowed, longest):
    """What batches are computed with, counted one by one."""
    return sum(min(length for length in allowed if length >= each) for each in longest)


def least_of_all_choices(longest, enough, most, cost):
    """By trying every choice of lengths."""
    choices = range(1, enough)
    return min(
        positions((*chosen, enough), longest) + cost * (1 + len(chosen))
        for count in range(most)
        for chosen in itertools.combinations(choices, count)
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=12),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 20),
)
def test_no_other_lengths_take_less_time(longest, more, most, cost):
    enough = max(longest) + more
    kept, row_batches.MAX_LENGTHS = row_batches.MAX_LENGTHS, most
    try:
        found = BatchLengths.fitted(np.array(longest), enough, cost).allowed
    finally:
        row_batches.MAX_LENGTHS = kept
    assert len(found) <= most
    # The longest row of all counts as a batch: it may come in a batch that was not counted.
    assert positions(found, [*longest, enough]) + cost * len(found) == (
        enough + least_of_all_choices(longest, enough, most, cost)
    )


def test_a_short_run_has_fewer_lengths_than_a_long_one():
    lengths = np.arange(8, 64)
    minilm = BertConfig(vocab_size=9, hidden_size=384, intermediate_size=1536)
    kinds = [
        len(LengthRule.of_model(minilm, steps).lengths(lambda: lengths, 64, 32).allowed)
        for steps in (30, 300, 30_000)
    ]
    assert kinds == sorted(kinds)
    assert (kinds[0], kinds[-1]) == (2, 8)


def test_where_all_have_one_length_none_is_looked_at():
    assert LengthRule(fixed=9).lengths(lambda: pytest.fail("looked"), 64, 32).allowed == (9,)
