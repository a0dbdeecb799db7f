from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.serving.http.row_pool import RowPool


def taken(pool, most):
    while rows := pool.take(most):
        yield rows


REQUESTS = st.lists(st.lists(st.integers(1, 100), max_size=6), max_size=12)


@given(REQUESTS, st.integers(1, 300))
def test_every_row_leaves_once_and_no_batch_is_too_large(requests, most):
    pool = RowPool()
    for name, lengths in enumerate(requests):
        pool.add(name, lengths)
    batches = list(taken(pool, most))
    rows = [(row.owner, row.number) for batch in batches for row in batch]
    expected = {(name, at) for name, lengths in enumerate(requests) for at in range(len(lengths))}
    assert sorted(rows) == sorted(expected)
    assert pool.positions == len(pool) == len(pool._turns) == 0  # nor any owner
    for batch in batches:
        assert len(batch) == 1 or len(batch) * batch[-1].length <= most
        assert batch[-1].length == max(row.length for row in batch)


@given(REQUESTS, st.integers(0, 11))
def test_rows_of_a_dropped_request_are_gone(requests, dropped):
    pool = RowPool()
    for name, lengths in enumerate(requests):
        pool.add(name, lengths)
    pool.drop(dropped.__eq__)
    assert not pool._turns or pool._turns[0].owner != dropped
    assert dropped not in {row.owner for batch in taken(pool, 64) for row in batch}
    assert pool.positions == 0


def test_rows_of_like_length_leave_together():
    pool = RowPool()
    for name, length in enumerate([100, 10, 101, 9, 99, 10]):
        pool.add(name, [length])
    batches = [[row.length for row in batch] for batch in taken(pool, 1000)]
    assert batches == [[99, 100, 101], [9, 10, 10]]


def test_no_row_waits_for_ever():
    pool = RowPool()
    pool.add("first", [5])
    pool.add("odd", [50])
    pool.take(5)
    for number in range(20):
        pool.add(number, [5])
        if any(row.owner == "odd" for row in pool.take(5)):
            break
    assert number < 3
