from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.padding import padded_length


@given(st.integers(1, 600))
def test_a_length_has_eight_shapes_at_most_none_much_longer_than_the_row(length):
    kept = [padded_length(longest, length) for longest in range(1, length + 1)]
    for longest, positions in enumerate(kept, start=1):
        assert longest <= positions < longest + max(8, length / 8 + 1)
    assert len(set(kept)) <= 8
    assert kept[-1] == length


def test_a_batch_without_a_token_has_positions():
    assert padded_length(0, 128) == 16
