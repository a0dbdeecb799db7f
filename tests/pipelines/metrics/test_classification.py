"""Class scores, held to what scikit-learn 1.9.1 gave for the same decisions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.classification import accuracy, f1_score, matthews_correlation

# fmt: off
RECORDED = [
    (  # two classes, 20 examples
        [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0],
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0],
        {"accuracy": 0.8, "f1": 0.8333333333333334, "matthews": 0.6005325641789633},
    ),
    (  # two classes, 37 examples
        [1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1,
         0, 0, 0, 0, 1, 0, 0, 1],
        [1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1,
         0, 0, 0, 1, 1, 0, 0, 1],
        {"accuracy": 0.7837837837837838, "f1": 0.8, "matthews": 0.5693438283463509},
    ),
    (  # three classes
        [0, 0, 1, 2, 2, 2, 1, 0, 2, 1, 2, 2, 2, 0, 2, 1, 1, 2, 2, 1, 0, 2, 0, 0],
        [0, 0, 1, 2, 2, 2, 1, 0, 0, 1, 2, 2, 2, 0, 1, 1, 1, 0, 2, 0, 0, 2, 0, 2],
        {"accuracy": 0.7916666666666666, "f1": 0.8333333333333333, "matthews": 0.6898790299270415},
    ),
    ([0, 0, 0], [0, 0, 0], {"accuracy": 1.0, "f1": 0.0, "matthews": 0.0}),
    ([0, 0, 1], [1, 1, 1], {"accuracy": 1 / 3, "f1": 0.5, "matthews": 0.0}),
]
# fmt: on


@pytest.mark.parametrize(("predictions", "labels", "scores"), RECORDED)
def test_scores_equal_the_recorded_ones(predictions, labels, scores):
    assert accuracy(predictions, labels) == pytest.approx(scores["accuracy"], abs=1e-15)
    assert f1_score(predictions, labels) == pytest.approx(scores["f1"], abs=1e-15)
    assert matthews_correlation(predictions, labels) == pytest.approx(scores["matthews"], abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_scores_do_not_depend_on_the_order_of_the_examples(pairs):
    forward, backward = np.array(pairs), np.array(pairs[::-1])
    for score in (accuracy, f1_score, matthews_correlation):
        assert score(*forward.T) == score(*backward.T)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_matthews_of_opposite_decisions_is_the_negative(pairs):
    predictions, labels = np.array(pairs).T
    opposite = matthews_correlation(1 - predictions, labels)
    assert opposite == pytest.approx(-matthews_correlation(predictions, labels), abs=1e-12)


def test_f1_of_another_class_counts_that_class():
    assert f1_score([0, 0, 1], [0, 1, 1], positive=0) == pytest.approx(2 / 3)


@pytest.mark.parametrize("score", [accuracy, f1_score, matthews_correlation])
def test_vectors_of_different_length_are_refused(score):
    with pytest.raises(ValueError, match="one length"):
        score([0, 1], [0, 1, 1])


@pytest.mark.parametrize("score", [accuracy, f1_score, matthews_correlation])
def test_no_examples_have_no_score(score):
    with pytest.raises(ValueError, match="no examples"):
        score([], [])
