"""Scores of predicted numbers: Pearson's and Spearman's correlation."""

from collections.abc import Sequence

import numpy as np


def pearson_correlation(
    predictions: Sequence[float] | np.ndarray, labels: Sequence[float] | np.ndarray
) -> float:
    """Pearson's correlation coefficient: how well a straight line maps one on the other.

    It is not a number where all predictions, or all labels, are the same (a single one is).

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.

    Raises:
        ValueError: the two are not vectors of one length.

    Example:
        >>> round(pearson_correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 12)
        1.0
    """
    predicted, true = np.asarray(predictions, np.float64), np.asarray(labels, np.float64)
    if predicted.shape != true.shape or predicted.ndim != 1 or not len(true):
        raise ValueError(
            f"predictions {predicted.shape} and labels {true.shape} must be two vectors of one "
            "length"
        )
    if np.all(predicted == predicted[0]) or np.all(true == true[0]):
        return float("nan")
    # Unit vectors first: products of tiny or huge values would under- or overflow.
    return float(np.clip(np.dot(_unit(predicted), _unit(true)), -1.0, 1.0))


def spearman_correlation(
    predictions: Sequence[float] | np.ndarray, labels: Sequence[float] | np.ndarray
) -> float:
    """Spearman's rank correlation: how well any rising curve maps one on the other.

    Equal values share the mean of their ranks. It is not a number where all predictions, or all
    labels, are the same.

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.

    Example:
        >>> round(spearman_correlation([1.0, 2.0, 30.0], [0.1, 0.2, 0.3]), 12)
        1.0
    """
    return pearson_correlation(
        mean_ranks(np.asarray(predictions, np.float64)), mean_ranks(np.asarray(labels, np.float64))
    )


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """The ranks 1, 2, … of `values`; equal values share the mean of theirs.

    Example:
        >>> mean_ranks(np.array([20.0, 10.0, 20.0])).tolist()
        [2.5, 1.0, 2.5]
    """
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(sizes)
    return (last_rank - (sizes - 1) / 2)[group]


def _unit(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean()
    scaled = centred / np.abs(centred).max()
    return scaled / np.linalg.norm(scaled)
