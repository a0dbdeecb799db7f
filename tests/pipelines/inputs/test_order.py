import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.inputs.order import RecordOrder, shuffled


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_every_record_has_one_place(size, key):
    order = shuffled(np.arange(size), size, np.uint64(key))
    assert sorted(order.tolist()) == list(range(size))


def test_neighbours_are_scattered():
    order = shuffled(np.arange(10_000), 10_000, np.uint64(1)).astype(float)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_epoch_holds_every_record_once(shuffle):
    epochs, records = RecordOrder(37, seed=4, shuffle=shuffle).at(np.arange(37 * 3))
    for epoch in range(3):
        assert sorted(records[epochs == epoch].tolist()) == list(range(37))


def test_epochs_differ_when_shuffled():
    _, records = RecordOrder(100, seed=4).at(np.arange(200))
    assert (records[:100] != records[100:]).any()
    _, again = RecordOrder(100, seed=5).at(np.arange(100))
    assert (records[:100] != again).any()
