"""Reading ahead; the order of real sources is told in tests/pipelines/inputs/test_order.py."""

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.batches import Phase, PhasedBatches, prefetched
from tests.support.array_batches import ArrayBatches


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


def phased():
    def source(first, rows):
        return ArrayBatches({"x": np.arange(first, first + 100)}, rows, seed=1, shuffle=False)

    return PhasedBatches([Phase(source(0, 4), 3, 1e-4), Phase(source(1000, 2), 2, 1e-5)])


def read(step, count):
    return [batch["x"].tolist() for batch in itertools.islice(phased().batches_from(step), count)]


def test_each_phase_begins_at_the_start_of_its_own_data():
    assert read(2, 3) == [[8, 9, 10, 11], [1000, 1001], [1002, 1003]]


@given(step=st.integers(0, 7))
def test_resuming_anywhere_gives_the_batches_of_the_whole_run(step):
    assert read(step, 3) == read(0, 10)[step : step + 3]


def test_the_boundaries_are_where_phases_end():
    assert phased().boundaries == (3, 5)
    assert [phased().phase_of(step)[0].learning_rate for step in (2, 3, 9)] == [1e-4, 1e-5, 1e-5]
