"""Reading ahead; the order of real sources is told in tests/pipelines/inputs/test_order.py."""

import itertools
import threading

import pytest

from keras_bert_impl.training.batches import prefetched


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
