"""Scores of class decisions: accuracy, F1 and Matthews' correlation coefficient."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def _same_length(predictions: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    predicted, true = np.asarray(predictions), np.asarray(labels)
    if predicted.shape != true.shape or predicted.ndim != 1:
        raise ValueError(
            f"predictions {predicted.shape} and labels {true.shape} must be two vectors of one "
            "length"
        )
    if not len(true):
        raise ValueError("a score of no examples is not defined")
    return predicted, true


def _sum_of_products(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def accuracy(predictions: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray) -> float:
    """The share of predictions that equal their label.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.

    Example:
        >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
        0.75
    """
    predicted, true = _same_length(predictions, labels)
    return float(np.mean(predicted == true))


def f1_score(
    predictions: Sequence[int] | np.ndarray,
    labels: Sequence[int] | np.ndarray,
    positive: int = 1,
) -> float:
    """The harmonic mean of precision and recall of one class.

    It is 0 where that class is neither predicted nor true.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.
        positive: the class that counts as found.

    Example:
        >>> f1_score([1, 1, 0, 0], [1, 0, 1, 0])
        0.5
    """
    predicted, true = _same_length(predictions, labels)
    hits = int(np.sum((predicted == positive) & (true == positive)))
    named = int(np.sum(predicted == positive)) + int(np.sum(true == positive))
    return 2.0 * hits / named if named else 0.0


def matthews_correlation(
    predictions: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray
) -> float:
    """Matthews' correlation coefficient, for two or more classes, between -1 and 1.

    It is 0 where all predictions, or all labels, are of one class.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.

    Example:
        >>> matthews_correlation([1, 1, 0, 0], [1, 1, 0, 0])
        1.0
        >>> matthews_correlation([1, 1, 1, 1], [1, 1, 0, 0])
        0.0
    """
    predicted, true = _same_length(predictions, labels)
    classes = np.union1d(predicted, true)
    predicted_counts = [int(np.sum(predicted == c)) for c in classes]
    true_counts = [int(np.sum(true == c)) for c in classes]
    # Whole numbers to the end: with all examples in one class the zero is exact.
    total, hits = len(true), int(np.sum(predicted == true))
    covariance = hits * total - _sum_of_products(predicted_counts, true_counts)
    spread = (total**2 - _sum_of_products(predicted_counts, predicted_counts)) * (
        total**2 - _sum_of_products(true_counts, true_counts)
    )
    return covariance / math.sqrt(spread) if spread else 0.0
