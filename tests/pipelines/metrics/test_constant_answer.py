import numpy as np
import pytest

from pipelines.metrics.classification import accuracy, f1_score
from pipelines.metrics.constant_answer import constant_answer, constant_scores
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
