import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.batches import call_length, split_batch


@given(rows=st.integers(1, 20), replicas=st.integers(1, 4), micro_batches=st.integers(1, 4))
def test_the_parts_hold_every_row_once_with_weight_one(rows, replicas, micro_batches):
    parts = split_batch({"x": np.arange(rows)}, replicas, micro_batches)
    assert parts["x"].shape[:2] == (replicas, micro_batches)
    real = parts["x"][parts["example_weights"] > 0]
    assert real.tolist() == list(range(rows))
    assert parts["example_weights"].sum() == rows


def test_rows_that_were_padding_before_stay_padding():
    batch = {"x": np.arange(4), "example_weights": np.array([1, 1, 0, 0], np.float32)}
    assert split_batch(batch, 2, 1)["example_weights"].tolist() == [[[1, 1]], [[0, 0]]]


@given(
    start=st.integers(0, 50),
    steps=st.integers(0, 60),
    longest=st.integers(1, 9),
    stops=st.lists(st.integers(0, 13), max_size=2),
    boundaries=st.lists(st.integers(0, 120), max_size=2),
)
def test_calls_cover_the_steps_and_end_where_something_is_due(
    start, steps, longest, stops, boundaries
):
    at, lengths = start, []
    while at < start + steps:
        lengths.append(call_length(at, start + steps, longest, stops, boundaries))
        at += lengths[-1]
    assert sum(lengths) == steps
    assert all(1 <= length <= longest for length in lengths)
    ends = set(np.cumsum([start, *lengths])[1:].tolist())
    due = {s for s in range(start + 1, start + steps) if any(e and s % e == 0 for e in stops)}
    assert due <= ends
    assert {b for b in boundaries if start < b < start + steps} <= ends
