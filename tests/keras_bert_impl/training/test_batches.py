import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import ArrayBatches, ArrayEvaluation, prefetched


def numbers(source, step, count):
    return [batch["x"].tolist() for batch in itertools.islice(source.batches_from(step), count)]


@given(
    rows=st.integers(1, 30),
    batch_size=st.integers(1, 12),
    step=st.integers(0, 40),
    shuffle=st.booleans(),
)
def test_the_batch_at_a_step_does_not_depend_on_where_reading_began(
    rows, batch_size, step, shuffle
):
    features = {"x": np.arange(rows)}
    from_start = numbers(ArrayBatches(features, batch_size, 3, shuffle), 0, step + 2)
    from_step = numbers(ArrayBatches(features, batch_size, 3, shuffle), step, 2)
    assert from_start[step:] == from_step


@given(rows=st.integers(1, 30), batch_size=st.integers(1, 12), seed=st.integers(0, 9))
def test_every_epoch_holds_every_example_once(rows, batch_size, seed):
    stream = ArrayBatches({"x": np.arange(rows)}, batch_size, seed).batches_from(0)
    places = np.concatenate([next(stream)["x"] for _ in range(3 * rows)])[: 3 * rows]
    for epoch in np.split(places, 3):
        assert sorted(epoch.tolist()) == list(range(rows))


def test_epochs_and_seeds_have_orders_of_their_own():
    features = {"x": np.arange(50)}
    first, second = numbers(ArrayBatches(features, 50, seed=1), 0, 2)
    (other,) = numbers(ArrayBatches(features, 50, seed=2), 0, 1)
    assert first != second
    assert first != other


def test_evaluation_pads_the_last_batch_and_says_so():
    batches = list(ArrayEvaluation({"x": np.arange(5)}, 3).batches())
    assert [batch["x"].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 0]]
    assert [batch["example_weights"].tolist() for batch in batches] == [[1, 1, 1], [1, 1, 0]]


def test_arrays_of_different_lengths_are_refused_by_name():
    with pytest.raises(UserError, match="Feature 'y' has 2 rows but 'x' has 3"):
        ArrayBatches({"x": np.arange(3), "y": np.arange(2)}, 1, seed=1)


def test_an_empty_set_is_refused():
    with pytest.raises(UserError, match="0 examples"):
        ArrayEvaluation({"x": np.arange(0)}, 2)


def test_items_are_made_ahead_of_their_reader_but_not_without_end():
    made, third = [], threading.Event()

    def items():
        for number in range(100):
            made.append(number)
            if number == 2:
                third.set()
            yield number

    with prefetched(items(), ahead=2) as ready:
        assert next(ready) == 0
        assert third.wait(timeout=60)
        assert made == [0, 1, 2]


def test_an_error_while_making_an_item_is_raised_where_it_would_be_read():
    def items():
        yield 1
        raise OSError("gone")

    with prefetched(items()) as ready:
        assert next(ready) == 1
        with pytest.raises(OSError, match="gone"):
            next(ready)


def test_leaving_the_block_ends_the_thread():
    before = threading.active_count()
    with prefetched(itertools.count()) as ready:
        next(ready)
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
