"""Class scores, held to what scikit-learn 1.9.1 gave for the same decisions."""

import math

import numpy as np
import pytest

from pipelines.metrics.classification import (
    accuracy,
    class_figures,
    f1_score,
    figures_by_class,
    matthews_correlation,
    pearson_correlation,
    spearman_correlation,
)

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


# fmt: off
CORRELATIONS = [
    (
        [4.201, 0.562, 3.019, 2.396, 2.973, 3.296, 1.533, 4.807, 2.329, 3.141, 3.176, 0.919, 0.309,
         2.058, 3.82],
        [2.5, 0.0, 5.0, 1.75, 3.5, 3.25, 0.75, 4.0, 3.25, 2.75, 3.0, 1.0, 2.0, 3.0, 4.5],
        0.7246945687946132, 0.640430362855462,
    ),
    (  # ties on both sides
        [1, 1, 2, 2, 3, 3, 3.5, 0], [0, 1, 1, 2, 2, 2, 5, 5.0],
        0.10486258199911004, 0.32710225430843876,
    ),
]
# fmt: on


@pytest.mark.parametrize(("predictions", "labels", "pearson", "spearman"), CORRELATIONS)
def test_correlations_equal_the_recorded_ones(predictions, labels, pearson, spearman):
    assert pearson_correlation(predictions, labels) == pytest.approx(pearson, abs=1e-14)
    assert spearman_correlation(predictions, labels) == pytest.approx(spearman, abs=1e-14)


def test_a_constant_prediction_has_no_correlation():
    assert math.isnan(pearson_correlation([2, 2, 2], [1, 2, 3]))
    assert math.isnan(spearman_correlation([1, 2, 3], [5, 5, 5]))


def test_tiny_and_huge_values_are_not_lost():
    values = np.array([1.0, 2.0, 4.0, 3.0])
    expected = pearson_correlation(values, [1, 2, 3, 4])
    assert pearson_correlation(values * 1e-200, [1, 2, 3, 4]) == pytest.approx(expected)
    assert pearson_correlation(values * 1e200, [1, 2, 3, 4]) == pytest.approx(expected)


def test_figures_of_classes_and_of_each():
    labels, predictions = np.array([0, 0, 1, 1, 3]), np.array([0, 1, 1, 1, 0])
    figures = class_figures(labels, predictions)
    assert (figures["accuracy"], figures["micro_f1"]) == (0.6, 0.6)
    assert figures["macro_f1"] == pytest.approx((0.5 + 0.8 + 0.0) / 3)  # of those that occur
    first, second, third, last = figures_by_class(labels, predictions, 4)
    assert first == (2, 2, 0.5, 0.5, 0.5)
    assert second == pytest.approx((2, 3, 2 / 3, 1.0, 0.8))
    assert (third, last) == ((0, 0, 0.0, 0.0, 0.0), (1, 0, 0.0, 0.0, 0.0))


def test_of_several_labels_all_must_be_right():
    labels, predictions = np.array([[1, 0], [1, 1]]), np.array([[1, 1], [1, 1]])
    figures = class_figures(labels, predictions)
    assert figures == pytest.approx({"accuracy": 0.5, "micro_f1": 6 / 7, "macro_f1": 5 / 6})
    assert list(figures_by_class(labels, predictions, 2))[1] == pytest.approx(
        (1, 2, 0.5, 1.0, 2 / 3)
    )
