import numpy as np
import pytest

from pipelines.pretraining_data.examples import PaddedExamples
from pipelines.pretraining_data.language_model import (
    NEXT_TOKEN,
    PREVIOUS_TOKEN,
    predict_neighbours,
)

CLS, SEP = 1, 2
IDS = np.array([[CLS, 50, 51, SEP, 60, SEP, 0], [CLS, 70, 71, 72, 73, SEP, 0]], np.uint16)


@pytest.mark.parametrize(("objective", "step"), [(NEXT_TOKEN, 1), (PREVIOUS_TOKEN, -1)])
def test_every_token_of_the_text_is_predicted_once_from_its_neighbour(objective, step):
    pairs = PaddedExamples(IDS[:1].copy(), np.array([2]), np.array([1]))
    text = PaddedExamples(IDS[1:].copy(), np.array([4]), np.array([0]), pairs=False)
    for examples, tokens in ((pairs, [50, 51, 60]), (text, [70, 71, 72, 73])):
        found, before = predict_neighbours(examples, objective), examples.ids.copy()
        count = found.counts[0]
        assert found.ids[0, :count].tolist() == tokens
        positions = found.positions[0, :count]
        assert examples.ids[0, positions + step].tolist() == tokens
        assert not found.ids[0, count:].any()
        np.testing.assert_array_equal(examples.ids, before)
