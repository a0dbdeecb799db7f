import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from keras_bert_impl.training.padding import trim_padding

masks = arrays.arrays(
    np.int32,
    st.tuples(st.integers(1, 4), st.integers(1, 200)),
    elements=st.integers(0, 1),
    fill=st.just(0),
)


def batch_of(mask):
    places = np.broadcast_to(np.arange(mask.shape[1], dtype=np.int32), mask.shape)
    return {"input_ids": places, "input_mask": mask, "segment_ids": mask}


@given(masks)
def test_only_columns_that_are_padding_everywhere_are_cut(mask):
    trimmed = trim_padding(batch_of(mask))
    kept = trimmed["input_mask"].shape[1]
    assert {array.shape for array in trimmed.values()} == {(len(mask), kept)}
    np.testing.assert_array_equal(trimmed["input_ids"], batch_of(mask)["input_ids"][:, :kept])
    assert not mask[:, kept:].any()
    assert kept >= 1


@given(st.integers(1, 600))
def test_a_length_has_eight_shapes_at_most_none_much_longer_than_the_example(length):
    kept = []
    for longest in range(1, length + 1):
        mask = np.zeros([1, length], np.int32)
        mask[0, :longest] = 1
        kept.append(trim_padding(batch_of(mask))["input_mask"].shape[1])
        assert longest <= kept[-1] < longest + max(8, length / 8 + 1)
    assert len(set(kept)) <= 8
    assert kept[-1] == length


def test_labels_weights_and_batches_without_a_mask_stay_as_they_are():
    mask = np.array([[1, 1] + [0] * 30])
    labels = np.zeros([1, 32])  # as long as the inputs, but no input of the encoder
    trimmed = trim_padding({**batch_of(mask), "label_ids": labels})
    assert trimmed["label_ids"].shape == (1, 32)
    assert trim_padding({"x": mask})["x"].shape == (1, 32)
