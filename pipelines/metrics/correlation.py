"""Scores of predicted numbers, by SciPy: Pearson's and Spearman's correlation."""

import warnings
from collections.abc import Sequence

import numpy as np

Values = Sequence[float] | np.ndarray


def pearson_correlation(predictions: Values, labels: Values) -> float:
    """Pearson's correlation coefficient: how well a straight line maps one on the other.

    It is NaN where all predictions, or all labels, are the same (a single one is).

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.

    Example:
        >>> round(pearson_correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 12)
        1.0
    """
    from scipy.stats import pearsonr

    predicted, true = _vectors(predictions, labels)
    if len(true) == 1:  # SciPy refuses it
        return float("nan")
    with warnings.catch_warnings(action="ignore"):  # of values that are all the same
        return float(pearsonr(predicted, true).statistic)


def spearman_correlation(predictions: Values, labels: Values) -> float:
    """Spearman's rank correlation: how well any rising curve maps one on the other.

    Equal values share the mean of their ranks. It is NaN where all predictions, or all labels, are
    the same.

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.

    Example:
        >>> round(spearman_correlation([1.0, 2.0, 30.0], [0.1, 0.2, 0.3]), 12)
        1.0
    """
    from scipy.stats import rankdata

    # Not `spearmanr`, which gives another last digit where predictions and labels change places.
    predicted, true = _vectors(predictions, labels)
    return pearson_correlation(rankdata(predicted), rankdata(true))


def _vectors(predictions: Values, labels: Values) -> tuple[np.ndarray, np.ndarray]:
    predicted, true = np.asarray(predictions, np.float64), np.asarray(labels, np.float64)
    if predicted.shape != true.shape or predicted.ndim != 1 or not len(true):
        raise ValueError(
            f"predictions {predicted.shape} and labels {true.shape} must be two vectors of one "
            "length"
        )
    return predicted, true
