"""Batches of vectors: rows of like length without common texts, divided into parts of texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.vector_step import part_feature
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Rows
from pipelines.tasks.vectors.batches import DistinctOrder, RowKeys, VectorBatches, keys_of
from pipelines.tasks.vectors.files import PAIRS, TRIPLES, VectorData


def texts_of(lengths):
    """Texts whose tokens are their own number, so that each may be found again."""
    lengths = np.asarray(lengths)
    ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    tokens = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    return RowSet([Rows(np.arange(len(lengths)), lengths, tokens)])


@given(st.data())
def test_no_two_rows_of_a_batch_have_a_key_in_common(data):
    size = data.draw(st.integers(1, 5))
    rows = data.draw(st.integers(2 * size, 60))
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    kinds = data.draw(st.integers(max(size, rows // 2), rows))
    # `size` rows with keys of their own: enough for one batch, however unlucky.
    numbers = np.concatenate([np.arange(kinds), draws.integers(kinds, size=rows - kinds)])
    keys = [RowKeys(frozenset([int(number), -1 - place])) for place, number in enumerate(numbers)]
    order = DistinctOrder(draws.integers(1, 30, rows), size, 7, keys)
    for step in range(3 * rows // size):
        batch = order.rows_of(step).tolist()
        assert len(set(batch)) == len(batch) == size
        assert len({numbers[row] for row in batch}) == size


def test_an_epoch_of_rows_without_common_texts_has_each_once_and_batches_of_like_lengths():
    lengths = np.random.default_rng(1).integers(1, 200, 640)
    order = DistinctOrder(lengths, 8, 3, [RowKeys(frozenset([row])) for row in range(640)])
    batches = np.array([order.rows_of(step) for step in range(80)])
    assert sorted(batches.ravel().tolist()) == list(range(640))
    spread = np.ptp(lengths[batches], axis=1)
    assert np.median(spread) < 0.15 * np.ptp(lengths)


def test_a_step_has_the_same_batch_whatever_was_asked_before():
    keys = [RowKeys(frozenset([row // 2])) for row in range(40)]
    make = lambda: DistinctOrder(np.arange(1, 41), 4, 5, keys)  # noqa: E731
    in_order, order = make(), make()
    expected = [in_order.rows_of(step).tolist() for step in range(30)]
    assert [order.rows_of(step).tolist() for step in (29, 3, 17)] == [
        expected[step] for step in (29, 3, 17)
    ]


def test_batches_that_the_window_fills_draw_no_order_of_all_rows():
    class Keys(list):
        def __len__(self):
            raise AssertionError("all rows were asked for")

    keys = Keys(RowKeys(frozenset([row])) for row in range(40))
    assert len(DistinctOrder(np.arange(1, 41), 4, 5, keys).rows_of(0)) == 4


def test_too_few_rows_without_common_texts_are_one_sentence():
    keys = [RowKeys(frozenset([row % 3])) for row in range(20)]
    with pytest.raises(UserError, match=r"`train_batch_size=4`: there are not so many rows"):
        DistinctOrder(np.ones(20, int), 4, 1, keys).rows_of(0)


@pytest.mark.parametrize(("at_once", "replicas"), [(3, 1), (99, 1), (2, 2), (5, 3)])
def test_every_text_of_a_batch_stands_where_its_place_says(at_once, replicas):
    lengths = np.random.default_rng(2).integers(1, 40, 60)
    table = np.random.default_rng(3).permutation(60).reshape(20, 3).astype(np.int32)
    labels = np.arange(20, dtype=np.float32)
    batches = VectorBatches(
        *(texts_of(lengths), table, labels, None),
        batch_size=4,
        seed=1,
        texts_at_once=at_once,
        replicas=replicas,
    )
    for step in range(8):
        batch = batches.batch_at(step)
        parts = sum(name.startswith("input_ids") for name in batch)
        ids = [batch[part_feature("input_ids", part)] for part in range(parts)]
        masks = [batch[part_feature("input_mask", part)] for part in range(parts)]
        assert all(len(part) == replicas and part.shape[1] <= at_once for part in ids)
        # Vectors of a replica come together, one part after the other; here a text's number.
        vectors = np.concatenate([part[one, :, 0] for one in range(replicas) for part in ids])
        found = np.concatenate([part[one].sum(-1) for one in range(replicas) for part in masks])
        rows = batch["labels"].astype(int)
        assert vectors[batch["places"]].tolist() == table[rows].tolist()
        assert found[batch["places"]].tolist() == lengths[table[rows]].tolist()


def test_parts_of_short_texts_are_not_padded_to_long_ones():
    lengths = np.array([4, 90] * 16)
    table = np.arange(32, dtype=np.int32).reshape(16, 2)
    batches = VectorBatches(
        *(texts_of(lengths), table, None, None), batch_size=8, seed=1, texts_at_once=8
    )
    batch = batches.batch_at(0)
    assert batch["input_ids/0"].shape == (1, 8, 4)
    assert batch["input_ids/1"].shape == (1, 8, 90)


def test_keys_are_texts_as_the_model_reads_them_and_all_known_answers():
    ids = np.array([1, 2, 3, 1, 4], np.int32)  # the first and the fourth text are one to the model
    tokens = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    texts = RowSet([Rows(np.arange(5), np.ones(5, int), tokens)])
    rows = np.array([[0, 1], [3, 2], [4, 2]], np.int32)
    said = [("", text) for text in ("The Dog", "b", "c", "the dog!", "d")]
    keys = keys_of(texts, rows, VectorData("", PAIRS, said, rows))
    assert keys == [RowKeys(frozenset(one)) for one in ([0, 1, 2], [0, 1, 2], [4, 2])]
    triples = np.array([[0, 1, 2], [4, 2, 1]], np.int32)
    assert keys_of(texts, triples, VectorData("", TRIPLES, said, triples)) == [
        RowKeys(frozenset([0, 1]), frozenset([2])),
        RowKeys(frozenset([4, 2]), frozenset([1])),
    ]


def test_keys_of_a_query_and_of_a_document_that_says_the_same_are_one_whatever_the_prompts():
    said = [("ask ", "a"), ("say ", "b"), ("ask ", "c"), ("say ", " A")]
    rows = np.array([[0, 1], [2, 3]], np.int32)
    keys = keys_of(texts_of([1, 2, 3, 4]), rows, VectorData("", PAIRS, said, rows))
    assert keys == [RowKeys(frozenset(one)) for one in ([0, 1], [2, 0])]


def test_a_negative_may_be_one_of_several_rows_but_no_answer_to_another():
    shared = [RowKeys(frozenset([row]), frozenset([99])) for row in range(8)]
    assert len(set(DistinctOrder(np.ones(8, int), 8, 1, shared).rows_of(0).tolist())) == 8
    answers = [*shared[:7], RowKeys(frozenset([99]))]
    order = DistinctOrder(np.ones(8, int), 4, 1, answers)
    assert all(7 not in order.rows_of(step) for step in range(20))


def test_a_row_that_fits_to_hardly_any_other_is_left_out():
    keys = [RowKeys(frozenset([row])) for row in range(200)]
    keys[0] = RowKeys(frozenset([0]), frozenset(range(1, 151)))
    order = DistinctOrder(np.ones(200, int), 64, 1, keys)
    assert all(len(set(order.rows_of(step).tolist())) == 64 for step in range(30))
