import numpy as np
import pytest

from pipelines.metrics.classification import accuracy, f1_score
from pipelines.metrics.constant_answer import AnswerVariety, constant_answer, constant_scores
from pipelines.metrics.correlation import pearson_correlation, spearman_correlation


def test_of_classes_it_is_the_most_frequent_one():
    np.testing.assert_array_equal(constant_answer(np.array([3, 1, 3, 0])), [3, 3, 3, 3])


def test_of_several_labels_it_is_each_that_holds_more_often_than_not():
    labels = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(constant_answer(labels), [[1, 0, 1]] * 3)


def test_of_numbers_it_is_the_mean():
    np.testing.assert_array_equal(constant_answer(np.array([0.0, 1.0, 5.0])), [2.0, 2.0, 2.0])


def test_the_scores_are_those_of_the_majority_class():
    labels = np.array([1] * 279 + [0] * 129)  # as many as in MRPC's dev set
    scores = constant_scores({"accuracy": accuracy, "f1": f1_score}, labels)
    assert scores["accuracy"] == pytest.approx(0.684, abs=1e-3)
    assert scores["f1"] == pytest.approx(0.812, abs=1e-3)


def test_a_correlation_with_a_constant_counts_as_zero():
    metrics = {"pearson": pearson_correlation, "spearman": spearman_correlation}
    scores = constant_scores(metrics, np.array([0.0, 2.5, 5.0], np.float32))
    assert scores == {"pearson": 0.0, "spearman": 0.0}


@pytest.mark.parametrize(
    ("answers", "right", "constant"),
    [
        (["a", "a"], ["a", "b"], True),
        (["a", "b"], ["a", "b"], False),
        (["a", "a"], ["a", "a"], False),  # nothing else was asked
        ([3.0, 3.001], [1.0, 5.0], True),
        ([1e6, 1e6 + 0.5], [1e6, 1e6 + 9.0], False),
        ([1e6, 1e6 + 0.01], [1e6, 1e6 + 9.0], True),
        ([], [], False),
    ],
)
def test_answers_are_constant_where_only_the_right_ones_differ(answers, right, constant):
    variety = AnswerVariety()
    for pair in zip(answers * 4, right * 4, strict=True):
        variety.add(*pair)
        assert not variety.is_constant  # of a few answers all may be alike by chance
    for pair in zip(answers, right, strict=True):
        variety.add(*pair)
    assert variety.is_constant == constant
