"""The contract of answerers, and what is the same for all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import ask, instances_of
from keras_bert_impl.serving.token_batches import (
    even_budget,
    rounded_length,
    rounded_rows,
    token_batches,
)
from tests.support.toy_answerer import ToyAnswerer


def test_answers_come_in_the_order_of_the_instances():
    answerer = ToyAnswerer()
    answers = ask(answerer, instances_of(answerer, ["aaaa", "a" * 60, "aa", "aaa"]))
    assert [answer["score"] for answer in answers] == [4, 60, 2, 3]
    assert answerer.sizes == [1, 3]


def test_nothing_asked_is_nothing_answered():
    assert ask(ToyAnswerer(), []) == []


def test_an_instance_that_is_no_text_is_named():
    with pytest.raises(UserError, match="instance 2"):
        ask(ToyAnswerer(), [{"text": "a"}, {"txt": "b"}])


@given(st.lists(st.integers(1, 512), max_size=200), st.integers(1, 5000))
def test_every_row_is_in_one_batch_that_has_room_for_it(lengths, budget):
    seen = []
    for rows, length in token_batches(np.array(lengths, int), budget, 512):
        assert max(lengths[row] for row in rows) <= length <= 512
        assert len(rows) * length <= budget or len(rows) == 1
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(lengths)))


@given(st.lists(st.integers(1, 512), min_size=1, max_size=200), st.integers(1, 5000))
def test_without_rounding_a_batch_is_as_long_as_its_longest_row(lengths, budget):
    for rows, length in token_batches(np.array(lengths), budget, 512, few_lengths=False):
        assert length == max(lengths[row] for row in rows)


@given(st.integers(1, 512))
def test_a_length_is_rounded_up_a_little(length):
    assert length <= rounded_length(length) < length + 32
    assert rounded_length(length) <= max(1.25 * length, length + 7)
    assert rounded_length(rounded_length(length)) == rounded_length(length)


def test_there_are_few_lengths():
    assert len({rounded_length(length) for length in range(1, 513)}) == 16 + 12


@given(st.integers(1, 5000))
def test_a_batch_is_filled_up_a_little(count):
    assert count <= rounded_rows(count) <= 1.25 * count
    assert rounded_rows(rounded_rows(count)) == rounded_rows(count)


def test_there_are_few_numbers_of_rows():
    assert len({rounded_rows(count) for count in range(1, 513)}) == 8 + 4 * 6


@given(st.lists(st.integers(1, 128), min_size=1, max_size=300), st.integers(1, 8))
def test_an_even_budget_takes_no_more_room_and_at_most_a_smaller_turn_more(lengths, at_once):
    array = np.array(lengths)

    def turns(budget):
        batches = list(token_batches(array, budget, 512, few_lengths=False))
        return -(-len(batches) // at_once)

    even = even_budget(array, 1024, at_once)
    assert even <= 1024
    assert even == 1024 or turns(even) <= turns(1024) + 1


def test_a_few_equal_texts_keep_all_cores_busy():
    for count, at_once in ((24, 2), (18, 4), (40, 4), (50, 3)):
        lengths = np.full(count, 128)
        budget = even_budget(lengths, 1024, at_once)
        sizes = [len(rows) for rows, _ in token_batches(lengths, budget, 512, few_lengths=False)]
        assert max(sizes) - min(sizes[:-1]) <= 1
        assert len(sizes) % at_once == 0


def test_one_batch_stays_one_and_many_stay_as_they_are():
    for lengths in (np.full(8, 128), np.full(400, 128), np.array([5]), np.array([], int)):
        assert even_budget(lengths, 1024, 2) == 1024
