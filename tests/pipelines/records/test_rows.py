import numpy as np

from pipelines.records.rows import Rows


def some_rows(choices=None):
    lengths = np.array([3, 1, 4])
    count = int(lengths.sum()) * (choices or 1)
    return Rows(
        examples=np.array([0, 0, 1]),
        lengths=lengths,
        tokens={
            "input_ids": np.arange(100, 100 + count, dtype=np.int32) * 3,
            "input_mask": np.ones(count, np.int32),
        },
        values={
            "label_ids": np.array([1, 0, 200], np.int32),
            "numbers": np.array([[0.5, -1.0], [2.0, 3.0], [4.0, 5.0]], np.float32),
        },
        choices=choices,
    )


def test_rows_are_padded_with_zeros_to_any_length():
    padded = some_rows().padded(5)
    assert padded["input_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    assert padded["input_ids"][1].tolist() == [309, 0, 0, 0, 0]
    assert padded["label_ids"].tolist() == [1, 0, 200]


def test_choices_are_an_axis_of_their_own():
    padded = some_rows(choices=2).padded(4)
    assert padded["input_ids"].shape == (3, 2, 4)
    assert padded["input_ids"][1].tolist() == [[318, 0, 0, 0], [321, 0, 0, 0]]
